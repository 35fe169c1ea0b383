// A study as TOML.
#include <fmt/format.h>

#include <map>

#include "sim/study/study.hpp"

namespace sluice::sim::scenario {
namespace {

/// A basic string of TOML.
std::string basic_string(std::string_view text) {
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') result += '\\';
    if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(letter));
    } else {
      result += letter;
    }
  }
  return result + "\"";
}

std::string list(const std::vector<std::string>& texts) {
  std::string result;
  for (const std::string& text : texts) {
    result += (result.empty() ? "" : ", ") + basic_string(text);
  }
  return "[" + result + "]";
}

std::string time(Span span) { return basic_string(fmt::format("{}us", span.count())); }

std::string limit_text(const ApiLimit& limit) {
  return fmt::format("{}/{}us{}", limit.limit, limit.window.count(),
                     limit.aligned ? " aligned" : "");
}

std::string fault_text(const FaultPlan& fault) {
  const FaultPlan standard;
  std::string text = fmt::format("\n[[fault]]\nkind = {}\nat = {}\n",
                                 basic_string(info_of(fault.kind).name), time(fault.at));
  if (fault.length != Span{0}) text += fmt::format("for = {}\n", time(fault.length));
  if (fault.share != standard.share) text += fmt::format("share = {}\n", fault.share);
  if (fault.factor != standard.factor) text += fmt::format("factor = {}\n", fault.factor);
  if (fault.step != Span{0}) text += fmt::format("step = {}\n", time(fault.step));
  if (fault.kind == FaultPlan::Kind::upstream_second) {
    text += fmt::format("limit = {}\n", basic_string(limit_text(fault.limit)));
  }
  return text;
}

}  // namespace

std::string to_toml(const Study& study, std::string_view revision) {
  std::string text = fmt::format(
      "# Made by revision {}.\nschema = 1\nname = {}\nquestion = {}\nseed = {}\nreplications = 1\n",
      revision, basic_string(study.name), basic_string(study.question), study.seed);
  std::map<std::string, std::map<std::string, Texts>> sections;
  for (const Setting& setting : study.settings) {
    const auto dot = setting.path.find('.');
    sections[setting.path.substr(0, dot)][setting.path.substr(dot + 1)] = setting.texts;
  }
  for (const auto& [section, values] : sections) {
    text += fmt::format("\n[{}]\n", section);
    for (const auto& [name, texts] : values) {
      const bool many = parameter(section + "." + name).is_list;
      text += fmt::format("{} = {}\n", name, many ? list(texts) : basic_string(texts.front()));
    }
  }
  const JudgeOptions& judges = study.judges;
  text += fmt::format("\n[judges]\nrecovery = {}\nnever = {}\n", time(judges.recovery),
                      list(judges.never));
  for (const FaultPlan& fault : study.faults) text += fault_text(fault);
  return text;
}

}  // namespace sluice::sim::scenario
