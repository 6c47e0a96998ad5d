#include "compile/frozen_table.h"
#include "base/hot.h"

#include <algorithm>
#include <bit>

namespace ingot::detail {
namespace {

constexpr size_t kMostRetired = 64;
constexpr size_t kTurnedAway = 16;  // of as many new calls, a full table takes one: each costs a new view

}  // namespace

FrozenTable::~FrozenTable() { delete view_.load(); }

INGOT_HOT const FrozenCall* FrozenTable::find(const LeafList& arguments, const CallKey& key) const {
  const View* view = view_.load();
  if (!view) return nullptr;
  auto found = [](const FrozenCall* call) {
    if (!call->used.load(std::memory_order_relaxed)) call->used.store(true, std::memory_order_relaxed);
    return call;
  };
  const uint32_t latest = latest_.load(std::memory_order_relaxed);
  if (latest < view->calls.size() && view->calls[latest]->holds(arguments, key)) return found(view->calls[latest]);
  const uint64_t hash = hash_of(arguments);
  const size_t mask = view->index.size() - 1;
  for (size_t i = hash & mask; uint32_t number = view->index[i]; i = (i + 1) & mask) {
    const FrozenCall* call = view->calls[--number];
    if (call->hash != hash || number == latest || !call->holds(arguments, key)) continue;
    // Not each time: threads whose arguments differ would take the line from each other.
    static thread_local uint8_t turn = 0;
    if (++turn % 4 == 0) latest_.store(number, std::memory_order_relaxed);
    return found(call);
  }
  return nullptr;
}

bool FrozenTable::put(Call call, const FrozenCall* instead, Garbage& garbage) {
  collect(garbage);
  if (retired_.size() >= kMostRetired) return false;
  std::vector<Call> removed;
  auto remove = [&](size_t at) {
    bytes_ -= calls_[at]->bytes();
    removed.push_back(std::move(calls_[at]));
    calls_[at] = std::move(calls_.back());
    calls_.pop_back();
  };
  const int64_t bytes = call->bytes();
  if (bytes > kMostBytes) return false;
  auto full = [&] { return calls_.size() >= kMostEntries || bytes_ + bytes > kMostBytes; };
  if (instead) {
    auto it = std::find_if(calls_.begin(), calls_.end(), [&](const Call& c) { return c.get() == instead; });
    if (it == calls_.end()) return false;
    remove(static_cast<size_t>(it - calls_.begin()));
  } else if (full() && ++turned_away_ % kTurnedAway != 0) {
    return false;
  }
  for (; full(); ++evictions_) remove(victim());
  bytes_ += bytes;
  calls_.push_back(std::move(call));
  show(std::move(removed), garbage);
  return true;
}

void FrozenTable::clear(Garbage& garbage) {
  std::vector<Call> removed = std::move(calls_);
  calls_.clear();
  bytes_ = 0;
  show(std::move(removed), garbage);
}

// The hand goes round and takes the first that was not used since it came by.
size_t FrozenTable::victim() {
  for (size_t steps = 0; steps < 2 * calls_.size(); ++steps) {
    hand_ = (hand_ + 1) % calls_.size();
    if (!calls_[hand_]->used.exchange(false, std::memory_order_relaxed)) break;
  }
  return hand_ % calls_.size();
}

void FrozenTable::show(std::vector<Call> removed, Garbage& garbage) {
  auto view = std::make_unique<View>();
  view->index.resize(std::bit_ceil(2 * calls_.size() + 2));
  const size_t mask = view->index.size() - 1;
  for (const Call& call : calls_) {
    view->calls.push_back(call.get());
    size_t i = call->hash & mask;
    while (view->index[i]) i = (i + 1) & mask;
    view->index[i] = static_cast<uint32_t>(view->calls.size());
  }
  Retired old;
  old.view.reset(view_.exchange(view.release()));
  old.calls = std::move(removed);
  old.epoch = end_epoch();
  retired_.push_back(std::move(old));
  collect(garbage);
}

void FrozenTable::collect(Garbage& garbage) {
  const uint64_t oldest = oldest_reader();
  auto held =
      std::stable_partition(retired_.begin(), retired_.end(), [&](const Retired& r) { return r.epoch >= oldest; });
  std::move(held, retired_.end(), std::back_inserter(garbage));
  retired_.erase(held, retired_.end());
}

}  // namespace ingot::detail
