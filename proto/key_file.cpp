#include "proto/key_file.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

namespace rigstep::wire {
namespace {

constexpr std::size_t kDigits = 2 * sizeof(Key);
constexpr std::size_t kMaxFileBytes = 16384;
constexpr const char* kHeading =
    "# Keys of a Rigstep link: NAME ROLE KEY. Keep it private; made by `rigstep keygen`, which also adds and "
    "removes.\n";

using Text = std::array<char, kMaxFileBytes>;

// Closes a file descriptor.
struct Descriptor {
  explicit Descriptor(int opened) : fd(opened) {}
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int fd;
};

KeyError key_error(const std::string& path, const std::string& problem, const std::string& remedy) {
  return KeyError("key file " + path + ": " + problem + ": " + remedy);
}

std::string system_text() { return std::system_category().message(errno); }

void require_private(const std::string& path, int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw key_error(path, system_text(), "check the path");
  if (!S_ISREG(status.st_mode))
    throw key_error(path, "is no regular file", "name the file that `rigstep keygen` wrote");
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    throw key_error(path, "others than its owner may use it",
                    "chmod 600 " + path + ", and make a new key where somebody may have read it");
  }
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    throw key_error(path, "belongs to another user", "copy it to a file of the user who runs this");
  }
}

std::string_view read_text(const std::string& path, Text& text) {
  const Descriptor file(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));  // else a FIFO is waited for
  if (file.fd < 0) {
    throw key_error(path, system_text(), "make one with `rigstep keygen " + path + "`, or copy the one that it wrote");
  }
  require_private(path, file.fd);
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t more = ::read(file.fd, text.data() + size, text.size() - size);
    if (more < 0) throw key_error(path, system_text(), "check the file");
    if (more == 0) return {text.data(), size};
    size += static_cast<std::size_t>(more);
  }
  throw key_error(path, "is longer than " + std::to_string(kMaxFileBytes) + " bytes", "name a key file");
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kMaxKeyNameBytes && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  });
}

bool parse_key(std::string_view digits, Key& key) {
  std::size_t bytes = 0;
  return digits.size() == kDigits &&
         sodium_hex2bin(key.data(), key.size(), digits.data(), digits.size(), nullptr, &bytes, nullptr) == 0 &&
         bytes == key.size();
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  constexpr const char* kBlanks = " \t\r";
  for (std::size_t at = line.find_first_not_of(kBlanks); at != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlanks, end);
  }
  return words;
}

void add_line(KeyRing& ring, std::string_view line, const std::string& path, int number) {
  const std::string place = path + ":" + std::to_string(number);
  const auto words = words_of(line);
  if (words.empty() || words[0].front() == '#') return;
  const Secret<Key> key;
  if (words.size() == 1 && parse_key(words[0], *key)) {
    throw key_error(place, "is one shared key, as protocol version 2 had it",
                    "each participant has a key of its own now; make them with `rigstep keygen rig.keys --participant "
                    "NAME --role controller`, name rig.keys in `link.key_file` and copy NAME.key to the rig");
  }
  if (words.size() != 3 || !parse_key(words[2], *key)) {
    throw key_error(place, "is not a name, a role and " + std::to_string(kDigits) + " hexadecimal digits",
                    "copy the file again, or make a new key with `rigstep keygen`");
  }
  try {
    ring.add(words[0], parse_key_role(std::string(words[1])), *key);
  } catch (const KeyError& error) {
    throw KeyError("key file " + place + ": " + error.what());
  }
}

Secret<KeyRing> read_all(const std::string& path) {
  const Secret<Text> text;
  Secret<KeyRing> ring;
  std::string_view left = read_text(path, *text);
  for (int number = 1; !left.empty(); ++number) {
    const std::size_t end = std::min(left.find('\n'), left.size());
    add_line(*ring, left.substr(0, end), path, number);
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return ring;
}

// A new file that only its owner may read, whole on the disk. flags: O_EXCL or O_TRUNC.
void write_text(const std::string& path, std::string_view text, int flags) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | flags, S_IRUSR | S_IWUSR));
  if (file.fd < 0) {
    throw key_error(path, system_text(),
                    errno == EEXIST ? "remove it first if nobody uses it any more" : "check the path");
  }
  if (::fchmod(file.fd, S_IRUSR | S_IWUSR) != 0 ||
      ::write(file.fd, text.data(), text.size()) != static_cast<ssize_t>(text.size()) || ::fsync(file.fd) != 0)
    throw key_error(path, system_text(), "is the disk full?");
}

void append(Text& text, std::size_t& size, std::string_view more) {
  if (more.size() > text.size() - size) throw KeyError("the key file would be too long: remove a participant");
  std::copy(more.begin(), more.end(), text.begin() + static_cast<std::ptrdiff_t>(size));
  size += more.size();
}

void append_key(Text& text, std::size_t& size, const ParticipantKey& key) {
  append(text, size, key.name());
  append(text, size, " ");
  append(text, size, to_string(key.role));
  append(text, size, " ");
  const Secret<std::array<char, kDigits + 1>> digits;
  sodium_bin2hex(digits->data(), digits->size(), key.key.data(), key.key.size());
  append(text, size, {digits->data(), kDigits});
  append(text, size, "\n");
}

// So that a server that looks meanwhile sees the old file or the new one.
void replace(const std::string& path, std::string_view text) {
  const std::string fresh = path + ".new";
  ::unlink(fresh.c_str());
  write_text(fresh, text, O_EXCL);
  if (::rename(fresh.c_str(), path.c_str()) != 0) {
    const std::string problem = system_text();
    ::unlink(fresh.c_str());
    throw key_error(path, problem, "check the path");
  }
}

bool exists(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

}  // namespace

const char* to_string(KeyRole role) noexcept {
  switch (role) {
    case KeyRole::controller:
      return "controller";
    case KeyRole::observer:
      return "observer";
    case KeyRole::operator_:
      return "operator";
  }
  return "unknown";
}

KeyRole parse_key_role(const std::string& text) {
  for (const KeyRole role : {KeyRole::controller, KeyRole::observer, KeyRole::operator_})
    if (text == to_string(role)) return role;
  throw KeyError("\"" + text.substr(0, kMaxKeyNameBytes) + "\" is no role: give controller, observer or operator");
}

const ParticipantKey* KeyRing::find(std::span<const std::uint8_t> id) const noexcept {
  const auto found = std::find_if(all().begin(), all().end(), [&](const ParticipantKey& each) {
    return std::equal(each.id.begin(), each.id.end(), id.begin(), id.end());
  });
  return found == all().end() ? nullptr : &*found;
}

void KeyRing::add(std::string_view name, KeyRole role, const Key& key) {
  if (!is_name(name)) {
    throw KeyError("a participant's name has 1 to " + std::to_string(kMaxKeyNameBytes) +
                   " letters, digits, '_', '-' or '.': give another name");
  }
  if (sodium_is_zero(key.data(), key.size()) != 0)
    throw KeyError("a key of all zeros protects nothing: make one with `rigstep keygen`");
  for (const ParticipantKey& each : all()) {
    if (each.name() == name)
      throw KeyError("there are two participants \"" + std::string(name) + "\": remove one, or give it another name");
    if (sodium_memcmp(each.key.data(), key.data(), key.size()) == 0)
      throw KeyError("\"" + std::string(name) + "\" has the key of \"" + std::string(each.name()) +
                     "\": make a key for each participant with `rigstep keygen`");
  }
  if (count_ == kMostKeys)
    throw KeyError("there are more than " + std::to_string(kMostKeys) + " keys: remove those that nobody uses");
  ParticipantKey& added = keys_[count_++];
  std::copy(name.begin(), name.end(), added.name_text.begin());
  added.role = role;
  added.key = key;
  added.id = key_id_of(key);
  added.proof_key = proof_key_of(key);
}

Secret<KeyRing> read_key_ring(const std::string& path) {
  Secret<KeyRing> ring = read_all(path);
  if (ring->all().empty()) {
    throw key_error(path, "has no key",
                    "add a participant with `rigstep keygen " + path + " --participant NAME --role controller`");
  }
  return ring;
}

Secret<ParticipantKey> read_participant_key(const std::string& path, KeyRole role) {
  const Secret<KeyRing> ring = read_key_ring(path);
  const auto keys = ring->all();
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const ParticipantKey& each) { return each.role == role; });
  Secret<ParticipantKey> key;
  *key = found != keys.end() ? *found : keys.front();
  return key;
}

Secret<ParticipantKey> make_participant_key(const std::string& name, KeyRole role) {
  const Secret<KeyRing> ring;
  const Secret<Key> key;
  randombytes_buf(key->data(), key->size());
  ring->add(name, role, *key);
  Secret<ParticipantKey> made;
  *made = ring->all()[0];
  return made;
}

Secret<std::array<char, 256>> key_line(const ParticipantKey& key) {
  const Secret<Text> text;
  std::size_t size = 0;
  append_key(*text, size, key);
  Secret<std::array<char, 256>> line;
  static_assert(kMaxKeyNameBytes + kDigits + 16 < sizeof(std::array<char, 256>));
  std::copy_n(text->begin(), size, line->begin());
  return line;
}

void write_key_file(const std::string& path) {
  const std::size_t begin = path.find_last_of('/') + 1;
  std::string name = path.substr(begin, path.rfind('.') > begin ? path.rfind('.') - begin : std::string::npos);
  name.resize(std::min(name.size(), kMaxKeyNameBytes));
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !is_name(std::string_view(&c, 1)); }, '_');
  const Secret<ParticipantKey> key = make_participant_key(name, KeyRole::controller);
  const Secret<std::array<char, 256>> line = key_line(*key);
  write_text(path, line->data(), O_EXCL);
}

void add_participant(const std::string& server_path, const std::string& participant_path, const std::string& name,
                     KeyRole role) {
  const Secret<Text> text, alone;
  const bool extends = exists(server_path);
  const Secret<KeyRing> ring = extends ? read_all(server_path) : Secret<KeyRing>();
  const Secret<ParticipantKey> key = make_participant_key(name, role);
  try {
    ring->add(name, role, key->key);
  } catch (const KeyError& error) {
    throw KeyError("key file " + server_path + ": " + error.what());
  }
  std::size_t size = extends ? read_text(server_path, *text).size() : 0, alone_size = 0;
  if (!extends) append(*text, size, kHeading);
  if (size > 0 && (*text)[size - 1] != '\n') append(*text, size, "\n");
  append_key(*text, size, *key);
  append_key(*alone, alone_size, *key);
  write_text(participant_path, {alone->data(), alone_size}, O_EXCL);
  try {
    replace(server_path, {text->data(), size});
  } catch (...) {
    ::unlink(participant_path.c_str());  // a key that no server knows
    throw;
  }
}

void remove_participant(const std::string& server_path, const std::string& name) {
  const Secret<Text> text, left;
  const Secret<KeyRing> ring = read_all(server_path);
  const auto is_named = [&](const ParticipantKey& each) { return each.name() == name; };
  if (std::none_of(ring->all().begin(), ring->all().end(), is_named))
    throw key_error(server_path, "has no participant \"" + name + "\"", "see the names in the file");
  std::size_t size = 0;
  for (std::string_view rest = read_text(server_path, *text); !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    const auto words = words_of(rest.substr(0, end - (rest[end - 1] == '\n' ? 1 : 0)));
    if (words.empty() || words[0] != name) append(*left, size, rest.substr(0, end));
    rest.remove_prefix(end);
  }
  replace(server_path, {left->data(), size});
}

}  // namespace rigstep::wire
