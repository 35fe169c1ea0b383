// Everything in the core of Sluice: limiters, and the stores that need only the standard library.
#pragma once

#include "sluice/clock.hpp"
#include "sluice/decide.hpp"
#include "sluice/decision.hpp"
#include "sluice/error.hpp"
#include "sluice/key.hpp"
#include "sluice/memory_store.hpp"
#include "sluice/plan.hpp"
#include "sluice/quota.hpp"
#include "sluice/rng.hpp"
#include "sluice/store.hpp"
#include "sluice/time.hpp"
#include "sluice/token_bucket.hpp"
#include "sluice/virtual_store.hpp"
