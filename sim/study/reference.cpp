#include "sim/study/reference.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/scenario/effects.hpp"
#include "sim/scenario/parameters.hpp"
#include "sluice/sim/figures.hpp"

namespace sluice::sim::scenario {
namespace {

constexpr std::size_t widest_line = 100;

/// Words on lines that begin with `indent`.
std::string wrapped(const std::string& text, const std::string& indent) {
  std::string result;
  std::string line = indent;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t space = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, space - at);
    at = space + 1;
    if (line.size() > indent.size() && line.size() + 1 + word.size() > widest_line) {
      result += line + "\n";
      line = indent;
    }
    line += (line.size() > indent.size() ? " " : "") + word;
  }
  return result + line + "\n";
}

std::string parameter_text(const Parameter& parameter) {
  const std::string standard =
      parameter.standard.empty() ? "none" : std::string(parameter.standard);
  std::string text = fmt::format("{} = {}\n", parameter.path, standard);
  text += wrapped(std::string(parameter.help), "    ");
  text += wrapped("takes " + parameter.form(), "    ");
  if (const std::string needs = needs_of(parameter.path); !needs.empty()) {
    text += wrapped("needs " + needs, "    ");
  }
  return text;
}

std::string fault_text(const FaultInfo& fault) {
  std::string takes;
  for (const auto& [what, key] : fault_keys) {
    if (!fault.has(what)) continue;
    takes += (takes.empty() ? "" : ", ") + std::string(key);
    const bool is_share =
        what == FaultInfo::takes_factor && fault.has(FaultInfo::share_of_messages);
    if (is_share) takes += " (0 to 1)";
  }
  return wrapped(fmt::format("{}: {} ({})", fault.name, fault.help, takes), "  ");
}

}  // namespace

std::string parameters_text() {
  std::string text;
  std::string_view section;
  for (const Parameter& parameter : parameters()) {
    const std::string_view its_section = parameter.path.substr(0, parameter.path.find('.'));
    if (its_section != section)
      text += (text.empty() ? "[" : "\n[") + std::string(its_section) + "]\n";
    section = its_section;
    text += parameter_text(parameter);
  }
  text += "\n[[fault]]: each kind, with what it takes besides at\n";
  for (const FaultInfo& fault : faults_info()) text += fault_text(fault);
  return text;
}

std::string metrics_text() {
  std::string text;
  for (const MetricInfo& metric : metrics()) {
    text += fmt::format("{}: {}{}\n", metric.name, metric.title,
                        metric.unit.empty() ? std::string() : fmt::format(", {}", metric.unit));
    text += wrapped(std::string(metric.help), "    ");
  }
  return text;
}

}  // namespace sluice::sim::scenario
