// Bugs to plant in the shared sliding window's setting. Threading: constants.
#pragma once

#include "tests/twin/mutants.hpp"

namespace sluice::test::shared_sliding_window {

inline constexpr std::string_view set = "operation shared_sliding_window_configure";
inline constexpr std::string_view expect = "operation shared_sliding_window_expect";
inline constexpr std::string_view read = "operation shared_sliding_window_config";
inline constexpr std::string_view setting = "piece shared_sliding_window_setting";
inline constexpr std::string_view kernel = "src/rules/shared_sliding_window.cpp";

inline constexpr Mutant mutants[] = {
    {"nothing is kept", set,
     "add(after, shaped(rate, interval, word_limit, new_rate, new_interval, now))", ""},
    {"what was kept is lost", set, "for i = 1, #before do", "for i = 1, 0 do"},
    {"what has ended is kept", set, "elseif till > now and limit ~= 0 then",
     "elseif limit ~= 0 then"},
    {"a kept window holds no more than the old rate", set,
     "if rate * parts > limit then limit = rate * parts end", ""},
    {"a kept window is as long as the old", set, "then span = interval * times end",
     "then span = span end"},
    {"more than a log can hold is kept", set, "if times > most then times = most end", ""},
    {"a log newer than its setting", set, " or generation > new_version", ""},
    {"a log newer than its setting", kernel, " && s.generation <= version", ""},
    {"the last to end goes", set, "if all[i][3] < all[first][3] then",
     "if all[i][3] > all[first][3] then"},
    {"an update keeps a window for longer", set, "if now + span + Rule.max_reserved < till then",
     "if true then"},
    {"what has ended is told", read, "elseif till <= now then", "elseif false then"},
    {"the last end is told", read, "or till < first_end)", "or till > first_end)"},
    {"words that no kept window leaves accepted", read, "(limit == 0) ~= (span == 0)", "false"},
    {"a kept window ends with the interval", kernel, "now + span + Shared",
     "now + interval + Shared"},
    {"a fresh start keeps windows", kernel, "if (same_log) {", "if (true) {"},
    {"a second setting wins", set, "if version == 0 or mode ~= 0 then", "if true then"},
    {"the version follows the clock back", set, "if new_version < now then new_version = now end",
     "new_version = now"},
    {"the version stands", set, "new_version = version + 1 end", "new_version = version end"},
    {"an update starts a new log", set, "mode ~= 2 or", "true or"},
    {"another type keeps the log", set, " or per_client ~= new_per_client or", " or"},
    {"a setting is kept for ever", setting, "now >= touched + kept", "false"},
    {"a rate of none accepted", set, "new_rate < 1 or", "new_rate < 0 or"},
    {"another version is accepted", expect,
     "if version ~= expected or has_ended then return Errc.config_changed end", ""},
    {"windows that have ended are asked under", expect, "first_end ~= 0 and now >= first_end",
     "false"},
    {"more permits than the rate", expect,
     "if permits > rate then return Errc.cost_exceeds_capacity end", ""},
    {"a use is never noted", expect, "if now < touched or", "if false and"},
    {"words that no setting leaves accepted", setting, "per_client > 1 or", ""},
    {"a generation from the future accepted", setting, "generation > version or", ""},
    {"a setting is kept too long", setting, "now >= touched + kept", "now >= touched + 2 * kept"},
    {"the version follows the clock back", kernel,
     "std::max({Word{1}, now, s.version < word_limit ? s.version + 1 : 1})",
     "std::max(Word{1}, now)"},
    {"a fresh start keeps the log", kernel, "mode == static_cast<Word>(Mode::update) &&", ""},
    {"another type keeps the log", kernel, "s.per_client == per_client && ", ""},
    {"a setting is kept too long", kernel, "now >= s.touched + s.keep_alive",
     "now >= s.touched + 2 * s.keep_alive"},
    {"the clock set back is not noted", kernel, "if (now < s.touched ||", "if ("},
    {"answers the old rate", kernel, "is_new ? rate : s.rate, 0, 0", "s.rate, 0, 0"},
};

}  // namespace sluice::test::shared_sliding_window
