// Texts from a network, a file or a command line on their way to people. Whatever they hold, they must not steer the
// terminal, forge a line of a log or turn round what stands beside them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rigstep::wire {

inline constexpr std::size_t kMaxNameBytes = 64;  // of names that come from the other side of a link

// UTF-8 in which what is not to be printed stands as it would be written in a program: control characters and bytes
// that are no UTF-8 as \x1b; U+0080 to U+009F, ends of lines and marks of direction as \u202e. At most max_bytes of it,
// and nothing cut in two. What is printable stays as it is.
std::string printable(std::string_view text, std::size_t max_bytes = kMaxNameBytes);

// The same, all of it.
std::string printable_line(std::string_view text);

// The same of a text of several lines that the program has put together: '\n' stays.
std::string printable_lines(std::string_view text);

}  // namespace rigstep::wire
