// How what a program computes reaches the tensors from outside that the call writes.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/memory/storage.h"
#include "trace/flush_point.h"

namespace ingot::trace {

/// Of a slot in what find_aliases() gives: it is written, and others look at that memory differently, or it is one of
/// these others.
inline constexpr uint32_t kSeenElsewhere = 1u << 31;
inline uint32_t first_alias(uint32_t alias) { return alias & ~kSeenElsewhere; }

/// For each slot the first one that is the same memory (by address: storages of from_blob may share it), where one of
/// them is written; empty where none is. Two that look at one memory differently have kSeenElsewhere beside it: a graph
/// of independent inputs says what the call does as long as the one that is not written is read before. False if both
/// are written, or the memory is of two storages: there is no such graph.
bool find_aliases(std::span<const detail::TensorImpl* const> slots, std::span<const uint32_t> written,
                  std::vector<uint32_t>& aliases);

/// Where the program itself writes this output: the slot's memory, or null where it needs memory of its own.
void* donated_memory(const OutputTarget& target, const Tensor& slot);
/// After the run: a slot that the call writes holds the result, which lies in memory of its own, or, if that is null,
/// was written directly. `writes`: how often the ops of the segment wrote through this slot; the version of its storage
/// moves on by as many. Of slots that are one memory each is given, one of them with the result.
void write_back(const OutputTarget& target, const Tensor& slot, runtime::StoragePtr result, uint64_t writes = 1);

}  // namespace ingot::trace
