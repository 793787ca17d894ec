// The shared key of a link in a file of its own: one line of 64 hexadecimal digits, readable by its owner only. It is
// made on one machine, copied to the other by hand (scp), and never goes over the link. Load time only.
#pragma once

#include <string>

#include "core/mechanism/mechanism.h"
#include "proto/frame.h"

namespace rigstep::wire {

// A key file that is missing, unreadable, open to others or not a key; what() says which and what to do.
struct KeyError : Error {
  using Error::Error;
};

// Throws KeyError.
Key read_key_file(const std::string& path);

// Writes a new random key. Throws KeyError; a file that exists is never replaced.
void write_key_file(const std::string& path);

}  // namespace rigstep::wire
