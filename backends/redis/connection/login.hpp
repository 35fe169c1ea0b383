// The commands of the login, and the handling of their errors. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "sluice/error.hpp"
#include "sluice/redis/redis_store.hpp"

namespace sluice::redis_detail {

/// True for errors of a server that another address of its name may not have.
[[nodiscard]] bool is_unfit(Errc word) noexcept;

/// One command, and the errors that end the attempt.
struct Greeting {
  std::string command;
  enum class Needed { fully, if_permitted, to_be_served } needed;
  RedisStep step = RedisStep::login;

  /// `others`: there are other addresses to try.
  [[nodiscard]] bool fails_on(Errc refusal, bool others) const noexcept;
};

/// AUTH, if there is a password: the first command.
[[nodiscard]] std::vector<Greeting> make_authentication(const RedisCredentials& credentials);
/// The commands after the server's version is known. `is_bare`: only what calls need.
[[nodiscard]] std::vector<Greeting> make_greetings(const RedisOptions& options, bool is_bare);

}  // namespace sluice::redis_detail
