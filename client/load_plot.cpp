#include "client/load_figures.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iomanip>
#include <sstream>

namespace parley::client {
namespace {

constexpr double width = 860, height = 250, left = 70, top = 40, gap = 70;
constexpr double least = 1e-4; ///< seconds; the latency axis is logarithmic

/// Height in pixels, out of `height`, of a latency on an axis up to `most`.
double rise(double latency, double most) {
  const auto share = std::log(std::max(latency, least) / least) / std::log(most / least);
  return height * std::clamp(share, 0.0, 1.0);
}

std::string number_text(double seconds) {
  std::ostringstream text;
  if (seconds < 1)
    text << seconds * 1000 << " ms";
  else
    text << seconds << " s";
  return text.str();
}

void write_text(std::ostream& out, double x, double y, const std::string& text, const char* anchor = "start") {
  out << "<text x=\"" << x << "\" y=\"" << y << "\" text-anchor=\"" << anchor << "\">" << text << "</text>\n";
}

/// The latencies of each second of the run, by when they were due.
std::vector<latencies> by_second(const load_figures& all) {
  std::vector<latencies> seconds;
  for (const auto& a : all.answers) {
    const auto at = static_cast<std::size_t>(std::max(0.0F, a.due));
    if (seconds.size() <= at) seconds.resize(at + 1);
    seconds[at].add(latencies::seconds(a.latency));
  }
  return seconds;
}

void write_line(std::ostream& out, const std::vector<latencies>& seconds, double share, double most,
                const char* colour) {
  out << "<polyline fill=\"none\" stroke-width=\"1.5\" stroke=\"" << colour << "\" points=\"";
  const auto steps = static_cast<double>(std::max<std::size_t>(1, seconds.size()));
  for (std::size_t i = 0; i < seconds.size(); ++i)
    if (!seconds[i].empty())
      out << left + width * (static_cast<double>(i) + 0.5) / steps << ','
          << top + height - rise(seconds[i].quantile(share).count(), most) << ' ';
  out << "\"/>\n";
}

void write_bars(std::ostream& out, const load_figures& all, double most, double base) {
  constexpr std::size_t bars = 60;
  std::array<std::size_t, bars> counts{};
  for (const auto& a : all.answers) {
    const auto share = rise(a.latency, most) / height;
    ++counts[std::min(bars - 1, static_cast<std::size_t>(share * bars))];
  }
  const auto tallest = static_cast<double>(std::max<std::size_t>(1, *std::max_element(counts.begin(), counts.end())));
  for (std::size_t i = 0; i < bars; ++i) {
    const auto tall = height * static_cast<double>(counts[i]) / tallest;
    out << "<rect fill=\"#4878a8\" x=\"" << left + width * static_cast<double>(i) / bars << "\" y=\"" << base - tall
        << "\" width=\"" << width / bars - 1 << "\" height=\"" << tall << "\"/>\n";
  }
}

} // namespace

std::string load_plot(const load_figures& all, const load_run& run) {
  const auto whole = all.unit_latency();
  const auto most = std::max(2.0, whole.quantile(1).count());
  const auto seconds = by_second(all);
  const auto base = top + 2 * height + gap; // bottom of the lower chart
  std::ostringstream out;
  out << std::fixed << std::setprecision(1);
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << left + width + 30 << ' ' << base + 50
      << "\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  std::ostringstream title;
  title << "Unit latency over " << std::lround(run.seconds) << " s: " << all.held << " sessions, " << whole.count()
        << " answers, p50 " << milliseconds_text(whole.quantile(0.5)) << ", p99 "
        << milliseconds_text(whole.quantile(0.99));
  write_text(out, left, top - 16, title.str());
  for (const auto mark : {0.001, 0.01, 0.1, 1.0}) {
    const auto y = top + height - rise(mark, most);
    const auto x = left + width * rise(mark, most) / height;
    out << "<path stroke=\"#ccc\" d=\"M" << left << ' ' << y << 'h' << width << "M" << x << ' ' << base << "v"
        << -height << "\"/>\n";
    write_text(out, left - 8, y + 4, number_text(mark), "end");
    write_text(out, x, base + 18, number_text(mark), "middle");
  }
  write_line(out, seconds, 0.5, most, "#4878a8");
  write_line(out, seconds, 0.99, most, "#c05030");
  write_text(out, left, top + height + 18, "0 s");
  write_text(out, left + width, top + height + 18, std::to_string(seconds.size()) + " s", "end");
  write_text(out, left + width / 2, top + height + 18, "median blue, 99th percentile of each second red", "middle");
  write_bars(out, all, most, base);
  write_text(out, left + width / 2, base + 38, "how often which latency", "middle");
  out << "</svg>\n";
  return out.str();
}

} // namespace parley::client
