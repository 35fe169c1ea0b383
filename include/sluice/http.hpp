// Limits over HTTP, both ways, without an HTTP library: what a server's response headers say, and
// the headers that a server of yours sends. See docs/http.md.
#pragma once

#include "sluice/http/apply.hpp"
#include "sluice/http/emit.hpp"
#include "sluice/http/feedback.hpp"
#include "sluice/http/parse.hpp"
