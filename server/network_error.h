#pragma once

#include "core/mechanism/mechanism.h"

namespace rigstep::server {

// The network does not do what was asked for: address, port, or nobody there.
struct NetworkError : Error {
  using Error::Error;
};

}  // namespace rigstep::server
