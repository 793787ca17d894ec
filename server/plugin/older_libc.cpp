// What lets a plugin load with a C library older than the one it was built with: glibc 2.31. Each function stands for
// one of a newer glibc; the linker puts it in its place (--wrap), in the plugin alone.
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstdio>

// the version of the functions that glibc has had from the beginning, and of its struct stat
#if defined(__x86_64__)
#define RIGSTEP_FIRST_GLIBC "GLIBC_2.2.5"
static constexpr int kStatVersion = 1;
#else
#define RIGSTEP_FIRST_GLIBC "GLIBC_2.17"
static constexpr int kStatVersion = 0;
#endif

extern "C" {

// Debian's libprotobuf.a, which is compiled for programs, reaches this one as if it stood in the same file.
extern FILE* __real_stderr;
FILE* __wrap_stderr = nullptr;
[[gnu::constructor(101)]] static void find_stderr() { __wrap_stderr = __real_stderr; }

// glibc 2.32: lets shared pointers count without atomics as long as there is one thread.
char __wrap___libc_single_threaded = 0;

// glibc 2.33 has it as a function of its own.
int __fxstat(int version, int file, struct stat* result);
int __wrap_fstat(int file, struct stat* result) { return __fxstat(kStatVersion, file, result); }

// glibc 2.34 has them in libc itself, before that they stand in libpthread.
int once_of_libpthread(pthread_once_t*, void (*)());
int key_create_of_libpthread(pthread_key_t*, void (*)(void*));
__asm__(".symver once_of_libpthread, pthread_once@" RIGSTEP_FIRST_GLIBC);
__asm__(".symver key_create_of_libpthread, __pthread_key_create@" RIGSTEP_FIRST_GLIBC);
int __wrap_pthread_once(pthread_once_t* control, void (*routine)()) { return once_of_libpthread(control, routine); }
int __wrap___pthread_key_create(pthread_key_t* key, void (*destroy)(void*)) {
  return key_create_of_libpthread(key, destroy);
}

#if defined(DLFO_STRUCT_HAS_EH_DBASE)
// glibc 2.35: of the file that holds an address, where what exceptions need of it stands.
struct Search {
  std::uintptr_t address;
  dl_find_object* result;
};

static int look_into(dl_phdr_info* file, std::size_t, void* data) {
  const Search& search = *static_cast<Search*>(data);
  const ElfW(Phdr)* frames = nullptr;
  std::uintptr_t first = UINTPTR_MAX, end = 0;
  bool holds = false;
  for (int i = 0; i < file->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = file->dlpi_phdr[i];
    if (part.p_type == PT_GNU_EH_FRAME) frames = &part;
    if (part.p_type != PT_LOAD) continue;
    const std::uintptr_t begin = file->dlpi_addr + part.p_vaddr;
    holds = holds || (search.address >= begin && search.address - begin < part.p_memsz);
    first = begin < first ? begin : first;
    end = begin + part.p_memsz > end ? begin + part.p_memsz : end;
  }
  if (!holds || frames == nullptr) return 0;
  *search.result = {};
  search.result->dlfo_map_start = reinterpret_cast<void*>(first);
  search.result->dlfo_map_end = reinterpret_cast<void*>(end);
  search.result->dlfo_eh_frame = reinterpret_cast<void*>(file->dlpi_addr + frames->p_vaddr);
  return 1;
}

int __wrap__dl_find_object(void* address, dl_find_object* result) {
  Search search{reinterpret_cast<std::uintptr_t>(address), result};
  return dl_iterate_phdr(look_into, &search) == 1 ? 0 : -1;
}
#endif

}  // extern "C"
