// Rate limits over HTTP, without an HTTP library: the response headers of a server, parsed, and
// those of your own server, written. See docs/http.md.
#pragma once

#include "sluice/http/apply.hpp"
#include "sluice/http/emit.hpp"
#include "sluice/http/feedback.hpp"
#include "sluice/http/parse.hpp"
#include "sluice/http/serve.hpp"
