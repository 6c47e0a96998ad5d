#include "runtime/code/code_names.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/first_use.h"
#include "base/log.h"
#include "base/mutex.h"
#include "runtime/files/files.h"

// gdb's JIT interface ("JIT Compilation Interface" in its manual): it reads the list below and stops at the function.
extern "C" {
struct jit_code_entry {
  jit_code_entry *next_entry, *prev_entry;
  const char* symfile_addr;
  uint64_t symfile_size;
};
struct jit_descriptor {
  uint32_t version, action_flag;
  jit_code_entry *relevant_entry, *first_entry;
};
__attribute__((visibility("default"), noinline, used)) void __jit_debug_register_code() {
  __asm__ volatile("" ::: "memory");
}
__attribute__((visibility("default"), used)) jit_descriptor __jit_debug_descriptor = {1, 0, nullptr, nullptr};
}

namespace ingot::runtime {
namespace {

enum { kNoAction, kRegister, kUnregister };

constinit Mutex names_mutex;

// The least object file that gdb accepts: one function in a text section whose bytes lie elsewhere.
struct ObjectFile {
  enum { kNull, kText, kSymbols, kStrings, kSections };
  Elf64_Ehdr header = {};
  Elf64_Shdr sections[kSections] = {};
  Elf64_Sym symbols[2] = {};
  char strings[256] = {};  // "" ".text" ".symtab" ".strtab" and the function's name
};

struct Entry {
  jit_code_entry link = {};
  ObjectFile file;
};

void fill(ObjectFile& file, const void* address, int64_t bytes, const std::string& name) {
  constexpr char kNames[] = "\0.text\0.symtab\0.strtab";
  std::memcpy(file.strings, kNames, sizeof kNames);
  size_t name_at = sizeof kNames;
  std::strncpy(file.strings + name_at, name.c_str(), sizeof file.strings - name_at - 1);

  std::memcpy(file.header.e_ident, ELFMAG, SELFMAG);
  file.header.e_ident[EI_CLASS] = ELFCLASS64;
  file.header.e_ident[EI_DATA] = ELFDATA2LSB;
  file.header.e_ident[EI_VERSION] = EV_CURRENT;
  file.header.e_type = ET_REL;
  file.header.e_machine = EM_X86_64;
  file.header.e_version = EV_CURRENT;
  file.header.e_shoff = offsetof(ObjectFile, sections);
  file.header.e_ehsize = sizeof(Elf64_Ehdr);
  file.header.e_shentsize = sizeof(Elf64_Shdr);
  file.header.e_shnum = ObjectFile::kSections;
  file.header.e_shstrndx = ObjectFile::kStrings;

  Elf64_Shdr& text = file.sections[ObjectFile::kText];
  text.sh_name = 1;
  text.sh_type = SHT_NOBITS;
  text.sh_flags = SHF_ALLOC | SHF_EXECINSTR;
  text.sh_addr = reinterpret_cast<uint64_t>(address);
  text.sh_size = bytes;
  text.sh_addralign = 64;
  Elf64_Shdr& symbols = file.sections[ObjectFile::kSymbols];
  symbols.sh_name = 7;
  symbols.sh_type = SHT_SYMTAB;
  symbols.sh_offset = offsetof(ObjectFile, symbols);
  symbols.sh_size = sizeof file.symbols;
  symbols.sh_link = ObjectFile::kStrings;
  symbols.sh_info = 1;  // index of the first global symbol
  symbols.sh_entsize = sizeof(Elf64_Sym);
  symbols.sh_addralign = 8;
  Elf64_Shdr& strings = file.sections[ObjectFile::kStrings];
  strings.sh_name = 15;
  strings.sh_type = SHT_STRTAB;
  strings.sh_offset = offsetof(ObjectFile, strings);
  strings.sh_size = sizeof file.strings;
  strings.sh_addralign = 1;

  file.symbols[1].st_name = static_cast<Elf64_Word>(name_at);
  file.symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  file.symbols[1].st_shndx = ObjectFile::kText;
  file.symbols[1].st_size = bytes;
}

void tell_debugger(uint32_t action, jit_code_entry* entry) {
  __jit_debug_descriptor.action_flag = action;
  __jit_debug_descriptor.relevant_entry = entry;
  __jit_debug_register_code();
  __jit_debug_descriptor.action_flag = kNoAction;
}

// A folder that all may write to holds the map: a link, a pipe or another user's file of its name is left alone. A file
// of our own may be there, of another generator of code in this process.
void write_perf_line(const void* address, int64_t bytes, const std::string& name) {
  if (!perf_watches()) return;
  const std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
  const FileHandle file(
      open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600));
  struct stat status;
  const bool ours = file && fstat(file.number(), &status) == 0 && S_ISREG(status.st_mode) &&
                    status.st_uid == geteuid() && status.st_nlink == 1;
  if (ours) {
    dprintf(file.number(), "%lx %lx ingot::%s\n", reinterpret_cast<unsigned long>(address),
            static_cast<unsigned long>(bytes), name.c_str());
    return;
  }
  static std::once_flag said;
  std::call_once(said, [&] { warn("INGOT_PERF: " + path + " is no file of this user's alone: perf gets no names"); });
}

}  // namespace

bool perf_watches() {
  static constinit FirstUse<const bool> watches;
  return watches.get([] { return std::getenv("INGOT_PERF") != nullptr; });
}

void* announce_code(const void* address, int64_t bytes, const std::string& name) {
  auto* entry = new Entry;
  fill(entry->file, address, bytes, name);
  entry->link.symfile_addr = reinterpret_cast<const char*>(&entry->file);
  entry->link.symfile_size = sizeof(ObjectFile);
  std::lock_guard lock(names_mutex);
  write_perf_line(address, bytes, name);
  entry->link.next_entry = __jit_debug_descriptor.first_entry;
  if (entry->link.next_entry) entry->link.next_entry->prev_entry = &entry->link;
  __jit_debug_descriptor.first_entry = &entry->link;
  tell_debugger(kRegister, &entry->link);
  return entry;
}

void withdraw_code(void* opaque) noexcept {
  auto* entry = static_cast<Entry*>(opaque);
  if (!entry) return;
  std::lock_guard lock(names_mutex);
  jit_code_entry& link = entry->link;
  if (link.prev_entry)
    link.prev_entry->next_entry = link.next_entry;
  else
    __jit_debug_descriptor.first_entry = link.next_entry;
  if (link.next_entry) link.next_entry->prev_entry = link.prev_entry;
  tell_debugger(kUnregister, &link);
  delete entry;
}

}  // namespace ingot::runtime
