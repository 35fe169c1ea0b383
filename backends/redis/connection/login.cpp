#include "backends/redis/connection/login.hpp"

#include <initializer_list>
#include <string_view>

#include "backends/redis/protocol/protocol.hpp"

namespace sluice::redis_detail {
namespace {

using Needed = Greeting::Needed;

Greeting greet(std::initializer_list<std::string_view> words, Needed needed,
               RedisStep step = RedisStep::login) {
  Greeting greeting{{}, needed, step};
  append_command(greeting.command, words);
  return greeting;
}

}  // namespace

bool is_unfit(Errc word) noexcept {
  return word == Errc::read_only || word == Errc::master_down || word == Errc::loading;
}

bool Greeting::fails_on(Errc refusal, bool others) const noexcept {
  if (refusal == Errc{}) return false;
  if (refusal == Errc::too_many_clients) return true;  // for any command
  switch (needed) {
    case Needed::fully:
      return true;
    case Needed::if_permitted:
      return false;
    // If there is no other address, a server that is not ready answers each call itself.
    case Needed::to_be_served:
      return refusal == Errc::no_auth || (others && is_unfit(refusal));
  }
  return true;
}

std::vector<Greeting> make_authentication(const RedisCredentials& credentials) {
  std::vector<Greeting> greetings;
  const std::string_view password = credentials.password.reveal();
  if (!credentials.username.empty()) {
    greetings.push_back(greet({"AUTH", credentials.username, password}, Needed::fully));
  } else if (!password.empty()) {
    greetings.push_back(greet({"AUTH", password}, Needed::fully));
  }
  return greetings;
}

std::vector<Greeting> make_greetings(const RedisOptions& options, bool is_bare) {
  using enum Greeting::Needed;
  std::vector<Greeting> greetings;
  if (options.database != 0) {
    greetings.push_back(
        greet({"SELECT", std::to_string(options.database)}, fully, RedisStep::select));
  }
  if (!options.client_name.empty() && !is_bare) {
    greetings.push_back(greet({"CLIENT", "SETNAME", options.client_name}, if_permitted));
  }
  greetings.push_back(greet({"PING"}, to_be_served));
  return greetings;
}

}  // namespace sluice::redis_detail
