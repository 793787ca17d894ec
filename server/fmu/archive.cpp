#include "server/fmu/archive.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

#include <memory>
#include <set>

#include "proto/printable.h"
#include "server/output/csv.h"

namespace rigstep::server {

namespace {

namespace fs = std::filesystem;

using Archive = std::unique_ptr<zip_t, void (*)(zip_t*)>;
constexpr std::size_t kPiece = std::size_t{1} << 16;

[[noreturn]] void cannot_write(const fs::path& path, const char* reason) {
  throw FileError(path.string() + ": cannot be written (" + reason +
                  "): name a file in a folder that you may write to");
}

// Why an entry must not be extracted; empty: it may.
std::string danger_of(const std::string& name, const zip_stat_t& entry, zip_t* archive) {
  if (name.empty() || name.size() > 1000) return "its name is empty or longer than 1000 characters";
  if (name.front() == '/' || name.find('\\') != std::string::npos || name.find(':') != std::string::npos)
    return "its name is no relative path with forward slashes";
  if (name.find('\0') != std::string::npos) return "its name has a zero byte";
  const fs::path path(name);
  for (const fs::path& part : path)
    if (part == ".." || part == ".") return "its name leads outside or about";
  zip_uint8_t system = 0;
  zip_uint32_t attributes = 0;
  if (zip_file_get_external_attributes(archive, entry.index, 0, &system, &attributes) == 0 &&
      system == ZIP_OPSYS_UNIX) {
    const unsigned type = attributes >> 16 & S_IFMT;
    if (type != 0 && type != S_IFREG && type != S_IFDIR) return "it is a link or a device";
  }
  if (entry.encryption_method != ZIP_EM_NONE) return "it is encrypted";
  if (entry.comp_method != ZIP_CM_STORE && entry.comp_method != ZIP_CM_DEFLATE)
    return "its compression is neither deflate nor store";
  return {};
}

void extract_entry(zip_t* archive, const zip_stat_t& entry, const std::string& shown, const fs::path& to,
                   std::uint64_t& room) {
  const auto damaged = [&](const char* reason) {
    return FmuError(fmt::format("{}: cannot be extracted ({}): the archive is damaged, get it again", shown, reason));
  };
  if (entry.size > room)
    throw FmuError(fmt::format("{}: more than {} MiB: nothing so large is extracted", shown, kMostBytes >> 20));
  const std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> source(zip_fopen_index(archive, entry.index, 0), zip_fclose);
  if (!source) throw damaged(zip_strerror(archive));
  std::error_code no_folder;
  fs::create_directories(to.parent_path(), no_folder);
  if (no_folder) throw damaged("a file stands where its folder belongs");
  const int file = ::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0700);
  if (file < 0) throw damaged("a file of this name stands there already");
  const std::unique_ptr<const int, void (*)(const int*)> closing(&file, [](const int* f) { ::close(*f); });
  std::string piece(kPiece, '\0');
  std::uint64_t left = entry.size;
  for (;;) {
    const zip_int64_t count = zip_fread(source.get(), piece.data(), piece.size());
    if (count < 0) throw damaged(zip_file_strerror(source.get()));
    if (count == 0) break;
    if (static_cast<std::uint64_t>(count) > left) throw damaged("it is longer than it says");
    if (::write(file, piece.data(), static_cast<std::size_t>(count)) != count)
      throw FileError(to.string() + ": cannot be written: make room on that disk");
    left -= static_cast<std::uint64_t>(count);
  }
  if (left > 0) throw damaged("it is shorter than it says");
  room -= entry.size;
}

}  // namespace

void write_archive(const fs::path& path, const std::vector<ArchiveFile>& files) {
  int error = 0;
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &error);
  if (archive == nullptr) {
    zip_error_t text;
    zip_error_init_with_code(&text, error);
    const std::string reason = zip_error_strerror(&text);
    zip_error_fini(&text);
    cannot_write(path, reason.c_str());
  }
  constexpr zip_uint32_t kFastest = 1;  // higher levels take ten times as long for a twentieth of the size
  for (const ArchiveFile& file : files) {
    zip_source_t* source = zip_source_buffer(archive, file.content.data(), file.content.size(), 0);
    const zip_int64_t index =
        source == nullptr ? -1 : zip_file_add(archive, file.name.c_str(), source, ZIP_FL_ENC_UTF_8);
    if (index < 0 ||
        zip_set_file_compression(archive, static_cast<zip_uint64_t>(index), ZIP_CM_DEFLATE, kFastest) != 0 ||
        zip_file_set_external_attributes(archive, static_cast<zip_uint64_t>(index), 0, ZIP_OPSYS_UNIX,
                                         (S_IFREG | 0644U) << 16) != 0) {
      const std::string reason = zip_strerror(archive);
      zip_discard(archive);
      cannot_write(path, reason.c_str());
    }
  }
  if (zip_close(archive) != 0) {
    const std::string reason = zip_strerror(archive);
    zip_discard(archive);
    cannot_write(path, reason.c_str());
  }
}

Extracted extract_archive(const fs::path& path, const fs::path& folder) {
  int error = 0;
  const Archive archive(zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &error), zip_discard);
  if (!archive) {
    zip_error_t text;
    zip_error_init_with_code(&text, error);
    const std::string reason = zip_error_strerror(&text);
    zip_error_fini(&text);
    throw FmuError("cannot be read as a zip file (" + reason + "): name a .fmu");
  }
  const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  if (count < 0 || static_cast<std::uint64_t>(count) > kMostFiles)
    throw FmuError(fmt::format("has {} entries: {} at most are extracted", count, kMostFiles));
  Extracted result;
  std::set<std::string> seen;
  std::uint64_t room = kMostBytes;
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t entry;
    zip_stat_init(&entry);
    if (zip_stat_index(archive.get(), static_cast<zip_uint64_t>(i), ZIP_FL_ENC_GUESS, &entry) != 0)
      throw FmuError("an entry cannot be read: the archive is damaged, get it again");
    const std::string name = entry.name, shown = wire::printable(name);
    if (const std::string danger = danger_of(name, entry, archive.get()); !danger.empty())
      throw FmuError(shown + ": is not extracted: " + danger);
    if (!seen.insert(name).second) throw FmuError(shown + ": stands there twice");
    if (name.back() == '/') continue;  // a folder
    extract_entry(archive.get(), entry, shown, folder / name, room);
    result.names.push_back(name);
  }
  if (path.extension() != ".fmu") result.violations.emplace_back("the name of the file does not end with .fmu");
  if (seen.count("modelDescription.xml") == 0)
    throw FmuError("has no modelDescription.xml at its top: that is no functional mock-up unit");
  return result;
}

}  // namespace rigstep::server
