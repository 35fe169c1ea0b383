// Coroutines of a World, and how they sleep. Threading: the thread of the World.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>

#include "sluice/asio/sleep.hpp"
#include "sluice/sim/world.hpp"

namespace sluice::sim::scenario {

template <class T = void>
using Task = boost::asio::awaitable<T, World::Executor>;

}  // namespace sluice::sim::scenario
