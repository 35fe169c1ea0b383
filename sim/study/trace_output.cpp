#include "sim/study/trace_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "sim/judges/judges.hpp"
#include "sim/study/new_file.hpp"
#include "sluice/sim/run.hpp"

namespace sluice::sim::scenario {
namespace {

using What = JobEvent::What;

std::string line_of(const JobEvent& event) {
  std::string text =
      fmt::format(R"({{"us":{},"what":"{}","worker":{},"job":{},"key":{})", event.at.count(),
                  name_of(event.what), event.worker, event.job, event.key);
  if (event.what == What::answered) text += fmt::format(R"(,"status":{})", event.status);
  return text + "}\n";
}

/// One event of Chrome's format. `phase`: b and e begin and end a slice.
std::string slice(const JobEvent& event, char phase, const char* name, const std::string& args) {
  return fmt::format(
      R"({{"ph":"{}","cat":"job","name":"{}","id":{},"pid":{},"tid":0,"ts":{},"args":{{{}}}}})"
      ",\n",
      phase, name, event.job, event.worker, event.at.count(), args);
}

std::string slices_of(const JobEvent& event) {
  switch (event.what) {
    case What::came:
      return slice(event, 'b', "job", fmt::format(R"("key":{})", event.key));
    case What::sent:
      return slice(event, 'b', "call", "");
    case What::answered: {
      const std::string status = fmt::format(R"("status":{})", event.status);
      const std::string call = slice(event, 'e', "call", status);
      return event.status == 200 ? call + slice(event, 'e', "job", status) : call;
    }
    default:
      return slice(event, 'e', "job", fmt::format(R"("end":"{}")", name_of(event.what)));
  }
}

/// A fault, on a line of its own behind the workers.
std::string fault_text(const FaultPlan& fault, std::uint32_t workers, bool lines) {
  const std::string_view kind = scenario::info_of(fault.kind).name;
  if (lines) {
    return fmt::format(R"({{"us":{},"what":"fault","kind":"{}","until_us":{}}})"
                       "\n",
                       fault.at.count(), kind, fault.end().count());
  }
  return fmt::format(R"({{"ph":"X","name":"{}","pid":{},"tid":0,"ts":{},"dur":{},"args":{{}}}})"
                     ",\n",
                     kind, workers, fault.at.count(), fault.length.count());
}

}  // namespace

std::string write_trace(const Study& study, const std::filesystem::path& path,
                        const std::atomic<bool>* stop) {
  const bool lines = path.extension() == ".jsonl";
  const Scenario scenario = study.scenario(0, 0);
  NewFile file(path);
  if (!lines) file.out() << "[\n";
  for (const FaultPlan& fault : scenario.faults) {
    file.out() << fault_text(fault, scenario.fleet.workers, lines);
  }
  RunOptions options;
  options.stop = stop;
  options.on_event = [&](const JobEvent& event) {
    file.out() << (lines ? line_of(event) : slices_of(event));
  };
  const RunResult result = run(scenario, options);
  // The last element has no comma behind it.
  if (!lines) {
    file.out() << R"({"ph":"M","name":"process_name","pid":0,"args":{"name":"worker 0"}}])"
                  "\n";
  }
  file.commit();
  const auto endless = std::ranges::find(result.objections, time_judge, &Objection::judge);
  if (endless == result.objections.end()) return {};
  return path.string() + ": it has the events until " + endless->text;
}

}  // namespace sluice::sim::scenario
