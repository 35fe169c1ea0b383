// The search for an order, and the kernels that judge it.
#include "tests/linearizability/history.hpp"

#include <algorithm>

namespace sluice::test {

Model::Answer Model::decide(const AskedPlan& call) {
  Answer answer;
  answer.allowed = true;
  answer.at = call.at;
  std::vector<Effects> effects(call.steps.size());
  for (std::size_t i = 0; i < call.steps.size(); ++i) {
    const Step& step = call.steps[i];
    std::vector<Word>& words = states_[render(step.key)];
    words.resize(std::max(words.size(), cell_words));
    const Verdict verdict =
        run(*step.operation, words, {step.args, step.table}, to_word(call.at), effects[i]);
    if (verdict.status < 0) answer.error = static_cast<Errc>(-verdict.status);
    const auto told = effects[i].output();
    answer.output.insert(answer.output.end(), told.begin(), told.end());
    Decision& decision = answer.each.emplace_back();
    decision.allowed = verdict.status == Verdict::allowed;
    decision.remaining = verdict.remaining;
    decision.retry_after = Span{verdict.retry_after};
    decision.reset_after = Span{verdict.reset_after};
    answer.allowed = answer.allowed && decision.allowed;
  }
  for (std::size_t i = 0; answer.allowed && i < effects.size(); ++i) {
    std::vector<Word>& words = states_[render(call.steps[i].key)];
    words.resize(std::max(words.size(), effects[i].extent()));
    effects[i].make(words);
  }
  return answer;
}

bool Model::explains(const AskedPlan& call) {
  if (call.error == Errc::store_full) return true;  // as if it was never asked
  Answer answer;
  std::array<std::uint64_t, 2> id{};
  if (call.id) id = {call.id->high, call.id->low};
  const auto known = call.id ? records_.find(id) : records_.end();
  if (known != records_.end()) {
    answer = known->second;
  } else {
    answer = decide(call);
    if (call.id && answer.allowed) records_[id] = answer;
  }
  if (call.error != answer.error) return false;
  if (call.error) return true;
  if (call.at != answer.at) return false;
  for (std::size_t i = 0; i < answer.each.size(); ++i) {
    const Decision& heard = call.each[i];
    const Decision& said = answer.each[i];
    if (heard.allowed != said.allowed || heard.remaining != said.remaining ||
        heard.retry_after != said.retry_after || heard.reset_after != said.reset_after) {
      return false;
    }
  }
  return std::equal(answer.output.begin(), answer.output.end(), call.output.begin());
}

std::string Model::text() const {
  std::string result;
  for (const auto& [key, words] : states_) {
    if (std::ranges::all_of(words, [](Word word) { return word == 0; })) continue;
    result += key;
    for (const Word word : words) result += ' ' + std::to_string(word);
    result += '\n';
  }
  for (const auto& [id, answer] : records_) {
    result += std::to_string(id[0]) + ' ' + std::to_string(id[1]) + ' ' +
              std::to_string(to_word(answer.at)) + '\n';
  }
  return result;
}

namespace {

class Search {
 public:
  explicit Search(const std::vector<AskedPlan>& calls) : calls_(calls) {}

  /// True if the calls that are not `done` can follow in some order.
  bool go(const Model& model, std::uint64_t done) {
    std::uint64_t first_end = ~std::uint64_t{0};
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if ((done >> i & 1) == 0) first_end = std::min(first_end, calls_[i].end);
    }
    if (first_end == ~std::uint64_t{0}) return true;
    if (!tried_.insert(std::to_string(done) + '\n' + model.text()).second) return false;
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if ((done >> i & 1) != 0 || calls_[i].begin > first_end) continue;
      Model next = model;
      if (next.explains(calls_[i]) && go(next, done | std::uint64_t{1} << i)) return true;
    }
    return false;
  }

 private:
  const std::vector<AskedPlan>& calls_;
  std::unordered_set<std::string> tried_;
};

}  // namespace

bool linearizes(const std::vector<AskedPlan>& calls) { return Search(calls).go(Model(), 0); }

std::string text(const std::vector<AskedPlan>& calls) {
  std::string result;
  for (const AskedPlan& call : calls) {
    result += std::to_string(call.begin) + ".." + std::to_string(call.end);
    for (std::size_t i = 0; i < call.steps.size(); ++i) {
      result += ' ' + std::string(call.steps[i].operation->name) + ' ' + render(call.steps[i].key) +
                (call.each[i].allowed ? " allowed, " : " refused, ") +
                std::to_string(call.each[i].remaining) + " left, " +
                std::to_string(call.each[i].retry_after.count()) + " us and " +
                std::to_string(call.each[i].reset_after.count()) + " us";
    }
    if (call.id) result += " once " + std::to_string(call.id->low);
    if (call.error) result += ' ' + call.error.message();
    result += " at " + std::to_string(to_word(call.at)) + '\n';
  }
  return result;
}

}  // namespace sluice::test
