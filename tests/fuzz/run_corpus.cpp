// Feeds a fuzz target every file of a corpus and seeded mutations of them: the part of fuzzing that any compiler can do
// in a test.   usage: run_corpus CORPUS_FOLDER MUTATIONS [SEED]
// A crash leaves the input that caused it in crash-NAME in the working directory.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

std::string crash_file;
const Bytes* current = nullptr;

void on_crash(int signal) {
  const int file = ::open(crash_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const char text[] = "fuzz: the input that crashed is in a file crash-... in the working directory\n";
  ssize_t unused = ::write(file, current->data(), current->size());
  unused = ::write(STDERR_FILENO, text, sizeof text - 1);
  static_cast<void>(unused);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void run(const Bytes& input) {
  current = &input;
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

std::vector<Bytes> read_corpus(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());  // the same mutations everywhere
  std::vector<Bytes> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

class Mutator {
 public:
  Mutator(const std::vector<Bytes>& corpus, std::uint64_t seed) : corpus_(corpus), random_(seed) {}

  Bytes next() {
    Bytes input = corpus_[below(corpus_.size())];
    for (std::size_t k = 1 + below(4); k > 0; --k) change(input);
    return input;
  }

 private:
  std::size_t below(std::size_t end) { return static_cast<std::size_t>(random_() % end); }
  std::uint8_t byte() { return static_cast<std::uint8_t>(random_()); }

  void change(Bytes& input) {
    if (input.empty()) return input.push_back(byte());
    const std::size_t at = below(input.size());
    const std::size_t length = 1 + below(std::min<std::size_t>(input.size() - at, 64));
    const auto from = input.begin() + static_cast<std::ptrdiff_t>(at);
    const auto to = from + static_cast<std::ptrdiff_t>(length);
    switch (below(7)) {
      case 0:
        input[at] = static_cast<std::uint8_t>(input[at] ^ (1u << below(8)));
        break;
      case 1:
        input[at] = byte();
        break;
      case 2:
        std::fill(from, to, static_cast<std::uint8_t>(below(2) * 0xFF));
        break;
      case 3:
        input.erase(from, to);
        break;
      case 4: {
        const Bytes part(from, to);
        input.insert(from, part.begin(), part.end());
        break;
      }
      case 5: {
        const Bytes& other = corpus_[below(corpus_.size())];
        if (other.empty()) break;
        const std::size_t start = below(other.size());
        const std::size_t count = std::min<std::size_t>(other.size() - start, length);
        input.insert(from, other.begin() + static_cast<std::ptrdiff_t>(start),
                     other.begin() + static_cast<std::ptrdiff_t>(start + count));
        break;
      }
      default:
        replace_number(input, at);
    }
  }

  // a number of a text file by a strange one
  void replace_number(Bytes& input, std::size_t at) {
    static const std::vector<std::string> kStrange = {"0",     "-1",         "1e308",      "-1e-320", "nan", "inf",
                                                      "-inf",  "4294967295", "2147483648", "1e-9",    "1",   "-0",
                                                      "99999", "\"\"",       "\"ground\"", "{}"};
    const auto digit = [](std::uint8_t c) { return (c >= '0' && c <= '9') || c == '.' || c == '-'; };
    const auto first = std::find_if(input.begin() + static_cast<std::ptrdiff_t>(at), input.end(), digit);
    const auto last = std::find_if_not(first, input.end(), digit);
    const std::string& text = kStrange[below(kStrange.size())];
    input.insert(input.erase(first, last), text.begin(), text.end());
  }

  const std::vector<Bytes>& corpus_;
  std::mt19937_64 random_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return std::fputs("usage: run_corpus CORPUS_FOLDER MUTATIONS [SEED]\n", stderr), 2;
  crash_file = "crash-" + std::filesystem::path(argv[0]).filename().string();
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGBUS, SIGILL}) std::signal(signal, on_crash);
  const std::vector<Bytes> corpus = read_corpus(argv[1]);
  const long mutations = std::atol(argv[2]);
  if (corpus.empty()) return std::fprintf(stderr, "%s: no corpus there\n", argv[1]), 1;
  for (const Bytes& input : corpus) run(input);
  Mutator mutator(corpus, argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1);
  for (long k = 0; k < mutations; ++k) run(mutator.next());
  std::printf("%zu files, %ld mutations\n", corpus.size(), mutations);
  return 0;
}
