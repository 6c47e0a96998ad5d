// The explanation as a page of its own: the graph drawn by its groups, tables beside it, texts behind a click.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "compile/compare.h"
#include "compile/explain.h"

namespace ingot {
namespace {

constexpr const char* kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>%NAME% - ingot explain</title><style>
body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1100px;color:#222;background:#fff}
h1{font-size:1.5em;margin:0}h2{font-size:1.15em;margin:1.6em 0 .4em;border-bottom:1px solid #ddd}
table{border-collapse:collapse}td,th{padding:.15em .8em .15em 0;text-align:left;vertical-align:top}
td.n,th.n{text-align:right}pre{background:#f6f6f4;padding:.8em;overflow-x:auto;font-size:12px;line-height:1.35}
summary{cursor:pointer;color:#246}.dim{color:#777}.bar{display:inline-block;height:.75em;background:#4a7bb5}
.bar.left{background:#ddd}svg text{font:12px system-ui,sans-serif}svg .small{font-size:10.5px;fill:#666}
</style></head><body>
)";

constexpr int kCardX = 230, kCardWidth = 560, kBarX = kCardX + kCardWidth + 16, kBarWidth = 150, kWidth = 1080;

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string kilobytes(double bytes) { return fmt::format("{:.1f} KB", bytes / 1024); }

const char* color_of(const std::string& form) {
  if (form == "matmul") return "#dbe8f6";
  if (form == "conv2d" || form == "conv2d_weight" || form == "attention" || form == "attention_backward" ||
      form == "host")
    return "#f6e7d3";
  if (form == "column") return "#e6dff3";
  return "#dff0dd";
}

std::string details(const std::string& title, const std::string& text) {
  return "<details><summary>" + escaped(title) + "</summary><pre>" + escaped(text) + "</pre></details>\n";
}

/// Groups from top to bottom in order of execution; lines at the left for values that pass from one to another.
class Picture {
 public:
  explicit Picture(const Explanation::Program& program) : p_(program) {
    for (size_t g = 0; g < p_.groups.size(); ++g) {
      for (uint32_t op : p_.groups[g].ops) in_group_.insert(op);
      for (const std::string& value : p_.groups[g].stored) home_[value] = static_cast<int>(g);
    }
    for (uint32_t i = 0; i < p_.ops.size(); ++i)
      if (!in_group_.count(i) && !p_.ops[i].operands.empty()) view_of_[p_.ops[i].value] = p_.ops[i].operands[0];
  }

  std::string svg() {
    std::string cards;
    int y = 10;
    std::vector<int> tops, heights;
    for (int argument = 0; const auto& input : p_.inputs)
      if (!input.constant) {
        pill(cards, y, fmt::format("argument {}  {}", argument++, input.type));
        sources_[input.value] = y + 12;
        y += 34;
      }
    double most = 0;
    for (const auto& s : p_.steps) most = std::max(most, weight(s));
    for (const auto& group : p_.groups) {
      tops.push_back(y);
      heights.push_back(card(cards, y, group, most));
      y += heights.back() + 14;
    }
    std::string lines = edges(tops, heights);
    for (int result = 0; const std::string& output : p_.outputs) {
      std::string value = root(output);
      if (auto found = home_.find(value); found != home_.end()) {
        auto g = static_cast<size_t>(found->second);
        lines += line(tops[g] + heights[g] - 8, y + 12);
      }
      pill(cards, y, fmt::format("result {}", result++));
      y += 34;
    }
    return fmt::format(
               "<svg viewBox=\"0 0 {} {}\" width=\"100%\" xmlns=\"http://www.w3.org/2000/svg\"><defs><marker id=\"a\" "
               "viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path "
               "d=\"M0 0L8 4L0 8z\" fill=\"#678\"/></marker></defs>\n",
               kWidth, y) +
           lines + cards + "</svg>\n";
  }

 private:
  static double weight(const Explanation::Step& s) { return s.mean_us > 0 ? s.mean_us : s.bytes; }

  std::string root(std::string value) const {
    for (auto it = view_of_.find(value); it != view_of_.end() && !home_.count(value); it = view_of_.find(value))
      value = it->second;
    return value;
  }

  static void pill(std::string& out, int y, const std::string& text) {
    out += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"24\" rx=\"12\" fill=\"#f3f3f0\" stroke=\"#aaa\"/><text x=\"{}\" "
        "y=\"{}\">{}</text>\n",
        kCardX, y, kCardWidth, kCardX + 14, y + 16, escaped(text));
  }

  // A card with its ops as chips, wrapped; returns its height.
  int card(std::string& out, int y, const Explanation::Group& group, double most) {
    std::string chips, form = "loop", space;
    int x = kCardX + 10, row = y + 28;
    for (uint32_t number : group.ops) {
      const Explanation::Op& op = p_.ops[number];
      int width = 14 + 7 * static_cast<int>(op.op.size());
      if (x + width > kCardX + kCardWidth - 8) x = kCardX + 10, row += 24;
      chips += fmt::format(
          "<g><title>{}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"19\" rx=\"4\" fill=\"#fff\" "
          "stroke=\"#9ab\"/><text x=\"{}\" y=\"{}\">{}</text></g>\n",
          escaped(op.op + " : " + op.type + "  " + op.location + "  " + op.module), x, row, width, x + 7, row + 14,
          escaped(op.op));
      x += width + 6;
    }
    int height = row + 26 - y;
    double time = 0, bytes = 0, share = 0;
    for (uint32_t s : group.steps) {
      form = p_.steps[s].form;
      space = p_.steps[s].space;
      time += p_.steps[s].mean_us;
      bytes += p_.steps[s].bytes;
      share += weight(p_.steps[s]);
    }
    std::string modules, numbers;
    for (uint32_t s : group.steps) {
      modules = fmt::format("{}", fmt::join(p_.steps[s].modules, ", "));
      numbers += (numbers.empty() ? "" : ", ") + std::to_string(s);
    }
    out += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"6\" fill=\"{}\" stroke=\"#789\"/><text x=\"{}\" "
        "y=\"{}\"><tspan font-weight=\"bold\">{}  {}</tspan><tspan dx=\"10\" fill=\"#555\">{}</tspan><tspan dx=\"10\" "
        "fill=\"#555\">{}</tspan></text>\n",
        kCardX, y, kCardWidth, height, color_of(form), kCardX + 10, y + 18, numbers, form, escaped(space),
        escaped(modules));
    out += chips;
    std::string label = (time > 0 ? duration(time) + ", " : "") + kilobytes(bytes);
    if (group.bytes_saved) label += ", saves " + kilobytes(static_cast<double>(group.bytes_saved));
    out += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"10\" fill=\"#4a7bb5\"/><text class=\"small\" x=\"{}\" "
        "y=\"{}\">{}</text>\n",
        kBarX, y + 8, most > 0 ? std::min(1.0, share / most) * kBarWidth : 0, kBarX, y + 34, escaped(label));
    return height;
  }

  static std::string line(int from, int to) {
    int reach = std::min(kCardX - 20, 24 + (to - from) / 6);
    return fmt::format(
        "<path d=\"M{0} {1}C{2} {1} {2} {3} {4} {3}\" fill=\"none\" stroke=\"#678\" stroke-opacity=\".7\" "
        "marker-end=\"url(#a)\"/>\n",
        kCardX, from, kCardX - reach, to, kCardX - 2);
  }

  std::string edges(const std::vector<int>& tops, const std::vector<int>& heights) const {
    std::set<std::pair<std::string, size_t>> drawn;
    std::string lines;
    for (size_t g = 0; g < p_.groups.size(); ++g)
      for (uint32_t op : p_.groups[g].ops)
        for (const std::string& operand : p_.ops[op].operands) {
          std::string value = root(operand);
          auto home = home_.find(value);
          auto source = sources_.find(value);
          int from = home != home_.end() && home->second != static_cast<int>(g)
                         ? tops[static_cast<size_t>(home->second)] + heights[static_cast<size_t>(home->second)] - 8
                     : source != sources_.end() ? source->second
                                                : -1;
          if (from >= 0 && drawn.insert({value, g}).second) lines += line(from, tops[g] + 12);
        }
    return lines;
  }

  const Explanation::Program& p_;
  std::set<uint32_t> in_group_;
  std::map<std::string, int> home_;             // value -> the group that stores it
  std::map<std::string, std::string> view_of_;  // ops without a group cost nothing: views
  std::map<std::string, int> sources_;          // inputs: where their lines start
};

std::string decisions(const Explanation::Program& p) {
  std::string rows = "<table><tr><th>op</th><th></th><th>why</th><th class=n>saves</th><th>where</th></tr>\n";
  for (const auto& d : p.decisions)
    rows += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td class=n>{}</td><td class=dim>{} {}</td></tr>\n",
                        escaped(d.op), d.fused ? "fused" : "stored", escaped(d.reason),
                        d.bytes_saved ? kilobytes(static_cast<double>(d.bytes_saved)) : "", escaped(d.module),
                        escaped(d.location));
  return "<details><summary>Every decision of the fusion</summary>" + rows + "</table></details>\n";
}

std::string longest(const Explanation::Program& p) {
  constexpr size_t kMost = 10;
  const std::vector<uint32_t> order = p.longest();
  const double total = p.mean_us();
  if (order.empty() || total <= 0) return {};
  std::string rows =
      "<h2>The longest steps</h2><table><tr><th></th><th class=n>time</th><th class=n></th><th class=n>GFLOP/s</th>"
      "<th class=n>GB/s</th><th>ops</th><th>over</th><th>layers</th></tr>\n";
  for (size_t i = 0; i < std::min(kMost, order.size()); ++i) {
    const Explanation::Step& s = p.steps[order[i]];
    if (s.mean_us <= 0) break;
    rows += fmt::format(
        "<tr><td>{}</td><td class=n>{}</td><td class=n>{:.0f}%</td><td class=n>{:.1f}</td><td class=n>{:.1f}</td>"
        "<td>{}</td><td class=dim>{}</td><td class=dim>{}</td></tr>\n",
        order[i], duration(s.mean_us), 100 * s.mean_us / total, s.operations / s.mean_us / 1e3,
        s.bytes / s.mean_us / 1e3, escaped(fmt::format("{}", fmt::join(s.ops, " "))), escaped(s.space),
        escaped(fmt::format("{}", fmt::join(s.modules, ", "))));
  }
  return rows + "</table>\n";
}

std::string page_of(const Explanation::Program& p, size_t number, bool open) {
  std::string text =
      fmt::format("<details{}><summary><b>Program #{}</b> {}{}, {} runs, compiled in {:.2f} ms</summary>\n",
                  open ? " open" : "", number, escaped(p.shapes.substr(0, 200)),
                  p.guards.empty() ? "" : escaped(", where " + p.guards), p.hits, p.compile_ms);
  text += "<p><b>" + escaped(p.summary()) + "</b></p>\n" + longest(p);
  double saved = p.bytes_saved(), moved = p.bytes_moved();
  double share = saved + moved > 0 ? moved / (saved + moved) : 0;
  text += fmt::format(
      "<h2>Memory traffic a call</h2><div><span class=bar style=\"width:{:.1f}%\"></span><span class=\"bar left\" "
      "style=\"width:{:.1f}%\"></span></div><div>{} moved, <span class=dim>{} avoided by fusion</span></div>\n",
      share * 90, (1 - share) * 90, kilobytes(moved), kilobytes(saved));
  text += "<h2>What runs</h2>\n" + Picture(p).svg();
  text += "<h2>Why</h2>\n" + decisions(p);
  std::string stages;
  for (const auto& s : p.stages) stages += fmt::format("{:<16} {:8.3f} ms  {} ops\n", s.name, s.ms, s.ops);
  text += details("Where the compile time went", stages);
  text += details("IR as recorded", p.trace) + details("IR after the passes", p.primitives);
  for (const auto& k : p.kernels)
    if (!k.product_form())
      text += details(fmt::format("Kernel {}, {} bytes", k.name, k.code_bytes), k.text + "\n" + k.assembly());
  return text + "</details>\n";
}

std::string body_of(const Explanation& e) {
  const Statistics& s = e.statistics;
  std::string text = fmt::format(
      "<h1>{}</h1><p class=dim>{} calls, {} programs compiled in {:.2f} ms, {} graph breaks, {} fallbacks; {}</p>\n",
      escaped(e.name), s.calls, s.compilations, s.compile_ms, s.graph_breaks, s.fallbacks, escaped(e.target));
  if (!e.frozen.empty()) text += fmt::format("<p class=dim>frozen: {}</p>\n", escaped(e.frozen));
  auto notices = [&](const char* title, const std::vector<Explanation::Notice>& list) {
    if (list.empty()) return;
    text += fmt::format("<h2>{}</h2><table>", title);
    for (const Explanation::Notice& n : list)
      text += fmt::format("<tr><td class=n>{}</td><td>{}</td><td>{}</td><td class=dim>{}</td></tr>\n", n.count,
                          escaped(n.op), escaped(n.reason), escaped(n.location));
    text += "</table>\n";
  };
  notices("Graph breaks", e.breaks);
  notices("Fallbacks", e.fallbacks);
  if (!e.recompiles.empty())
    text += "<h2>Recompiles</h2><table><tr><th>guard</th><th>was</th><th>is</th><th></th></tr>\n";
  for (const Explanation::Recompile& r : e.recompiles)
    text += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td class=dim>{}</td></tr>\n", escaped(r.guard),
                        escaped(r.before), escaped(r.after), escaped(r.location));
  if (!e.recompiles.empty()) text += "</table>\n";
  for (size_t i = e.programs.size(); i-- > 0;) text += page_of(e.programs[i], i, i + 1 == e.programs.size());
  return text;
}

}  // namespace

std::string Explanation::html() const {
  std::string text = kHead;
  text.replace(text.find("%NAME%"), 6, escaped(name));
  text += body_of(*this);
  for (const Explanation& e : backward) text += body_of(e);
  return text + "</body></html>\n";
}

}  // namespace ingot
