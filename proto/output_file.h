// Opening of files that are written. A file is never created through a symbolic link: whoever may write to a folder
// could otherwise choose by a link to nothing where the program creates one.
#pragma once

#include <cstdio>
#include <string>

namespace rigstep::wire {

enum class Existing {
  replace,  // what is there already is opened, through links too
  refuse,
};

// Descriptor of `path`, closed on exec; a new file has the mode 0644. access: O_WRONLY or O_RDWR. Negative: errno tells
// why, ELOOP for a symbolic link to nothing.
int open_output(const std::string& path, int access, Existing existing) noexcept;

// An empty text file; what is there already is replaced. Null: errno as above.
std::FILE* open_text_output(const std::string& path) noexcept;

// errno of these two in words.
std::string output_error(int error);

}  // namespace rigstep::wire
