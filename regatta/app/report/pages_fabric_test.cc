#include <cstddef>
#include <map>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/app/report/internal/fabric_drawing_plan.h"
#include "regatta/app/report/internal/sample_clusters.h"
#include "regatta/app/report/pages.h"
#include "regatta/model/topo/graph.h"

namespace regatta::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Element {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;  // up to the next tag

  double number(const std::string& key) const { return std::stod(attributes.at(key)); }
};

// A reader of the XML that the picture is made of; fails the test where it is not well formed.
class Reader {
 public:
  explicit Reader(std::string_view xml) : xml_(xml) {
    while (at_ < xml_.size() && !::testing::Test::HasFailure())
      read_tag();
    EXPECT_TRUE(open_.empty()) << "not closed: " << open_.back();
  }

  const std::vector<Element>& elements() const { return elements_; }

 private:
  void read_tag() {
    ASSERT_EQ(xml_[at_], '<') << xml_.substr(at_, 60);
    const std::size_t end = xml_.find('>', at_);
    ASSERT_NE(end, std::string_view::npos);
    const std::string tag(xml_.substr(at_ + 1, end - at_ - 1));
    const std::size_t next = xml_.find('<', end);
    const std::string text(
        xml_.substr(end + 1, (next == std::string_view::npos ? xml_.size() : next) - end - 1));
    at_ = next == std::string_view::npos ? xml_.size() : next;
    check_text(text);
    if (tag.front() == '/') {
      ASSERT_FALSE(open_.empty()) << tag;
      ASSERT_EQ(open_.back(), tag.substr(1));
      open_.pop_back();
      return;
    }
    read_element(tag, text);
  }

  void read_element(const std::string& tag, const std::string& text) {
    const std::string name = tag.substr(0, tag.find_first_of(" /"));
    Element element{name, {}, text};
    static const std::regex attribute("\\s+([a-zA-Z0-9:-]+)=\"([^\"<]*)\"");
    std::size_t read = name.size();
    for (std::sregex_iterator it(tag.begin(), tag.end(), attribute), none; it != none; ++it) {
      check_text((*it)[2]);
      EXPECT_TRUE(element.attributes.emplace((*it)[1], (*it)[2]).second) << "twice in " << tag;
      read += static_cast<std::size_t>(it->length());
    }
    const bool closes = tag.back() == '/';
    EXPECT_EQ(read + (closes ? 1 : 0), tag.size()) << "not all of it is attributes: " << tag;
    if (!closes) open_.push_back(name);
    elements_.push_back(std::move(element));
  }

  // An ampersand begins one of the five names of XML, or a number.
  static void check_text(const std::string& text) {
    static const std::regex lone("&(?!(amp|lt|gt|quot|apos|#[0-9]+);)");
    EXPECT_FALSE(std::regex_search(text, lone)) << text;
    for (const char c : text)
      EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << "control character";
  }

  std::string_view xml_;
  std::size_t at_ = 0;
  std::vector<std::string> open_;
  std::vector<Element> elements_;
};

std::vector<Element> read_xml(std::string_view xml) {
  return Reader(xml).elements();
}

std::vector<Element> elements_of(const std::string& svg, const std::string& name) {
  std::vector<Element> found;
  for (const Element& element : read_xml(svg)) {
    if (element.name == name) found.push_back(element);
  }
  return found;
}

std::size_t count_of_class(const std::string& svg, const std::string& style) {
  std::size_t count = 0;
  for (const Element& element : read_xml(svg)) {
    const auto found = element.attributes.find("class");
    count += found != element.attributes.end() && found->second == style ? 1 : 0;
  }
  return count;
}

class EveryPicture : public ::testing::TestWithParam<SampleCluster> {
 protected:
  std::string svg_ = fabric_svg(cluster_of(GetParam().yaml));
};

TEST_P(EveryPicture, IsWellFormedXml) {
  const std::vector<Element> elements = read_xml(svg_);
  ASSERT_FALSE(elements.empty());
  const Element& root = elements.front();
  EXPECT_EQ(root.name, "svg");
  EXPECT_EQ(root.attributes.at("xmlns"), "http://www.w3.org/2000/svg");
  EXPECT_EQ(root.attributes.at("viewBox"),
            "0 0 " + root.attributes.at("width") + " " + root.attributes.at("height"));
}

TEST_P(EveryPicture, KeepsInsideItsViewBox) {
  const Element root = elements_of(svg_, "svg").front();
  const double width = root.number("width");
  const double height = root.number("height");
  for (const Element& element : read_xml(svg_)) {
    for (const auto& [key, value] : element.attributes) {
      const bool is_x = key == "x" || key == "x1" || key == "x2" || key == "cx";
      const bool is_y = key == "y" || key == "y1" || key == "y2" || key == "cy";
      if (!is_x && !is_y) continue;
      EXPECT_GE(std::stod(value), 0) << element.name << " " << key;
      EXPECT_LE(std::stod(value), is_x ? width : height) << element.name << " " << key;
    }
    if (element.name != "rect") continue;
    EXPECT_LE(element.number("x") + element.number("width"), width);
    EXPECT_LE(element.number("y") + element.number("height"), height);
  }
}

Box text_box(const Element& text) {
  const double size = std::stod(text.attributes.at("style").substr(10));  // "font-size:12px"
  const double width = text_width(text.text, size);
  const auto style = text.attributes.find("class");
  const bool middle =
      style != text.attributes.end() && style->second.find("middle") != std::string::npos;
  const double x = text.number("x") - (middle ? width / 2 : 0);
  return {x, text.number("y") - 0.75 * size, width, 0.95 * size};
}

TEST_P(EveryPicture, WritesNoTextOverAnother) {
  const Element root = elements_of(svg_, "svg").front();
  std::vector<std::pair<std::string, Box>> texts;
  for (const Element& text : elements_of(svg_, "text"))
    texts.emplace_back(text.text, text_box(text));
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const Box& a = texts[i].second;
    EXPECT_LE(a.right(), root.number("width")) << texts[i].first;
    for (std::size_t j = 0; j < i; ++j) {
      const Box& b = texts[j].second;
      EXPECT_FALSE(a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom())
          << "'" << texts[i].first << "' and '" << texts[j].first << "'";
    }
  }
}

TEST_P(EveryPicture, IsTheSameEachTime) {
  EXPECT_EQ(svg_, fabric_svg(cluster_of(GetParam().yaml)));
}

std::vector<SampleCluster> all_clusters() {
  std::vector<SampleCluster> all = drawn_clusters();
  for (SampleCluster& sample : counted_clusters())
    all.push_back(std::move(sample));
  return all;
}

std::string name_of(const ::testing::TestParamInfo<SampleCluster>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Shapes, EveryPicture, ::testing::ValuesIn(all_clusters()), name_of);

class WholePicture : public ::testing::TestWithParam<SampleCluster> {};

TEST_P(WholePicture, HasEveryServerAndEverySwitchOnce) {
  const topo::Cluster cluster = cluster_of(GetParam().yaml);
  const topo::Graph graph = topo::build_graph(cluster);
  std::map<std::string, int> titles;
  const std::string svg = fabric_svg(cluster);
  for (const Element& title : elements_of(svg, "title"))
    ++titles[title.text.substr(0, title.text.find(": "))];
  for (const topo::Node& node : graph.nodes)
    EXPECT_EQ(titles[node.name], 1) << node.name;
  EXPECT_EQ(count_of_class(svg, "server"), cluster.servers.size());
}

INSTANTIATE_TEST_SUITE_P(Shapes, WholePicture, ::testing::ValuesIn(drawn_clusters()), name_of);

std::string lab_svg() {
  return fabric_svg(
      cluster_of(kTwoCpus +
                 "fabric: {tiers: [leaf, spine], servers_per_leaf: 2, spines: 2, uplink: 100Mbps}\n"
                 "servers: {count: 4}\n"));
}

TEST(FabricSvg, DrawsEachCableOfASmallClusterByItsName) {
  std::map<std::string, double> widths;
  for (const Element& element : read_xml(lab_svg())) {
    if (element.name == "line") widths["next"] = element.number("stroke-width");
    if (element.name != "title" || !widths.contains("next")) continue;
    widths[element.text] = widths["next"];
    widths.erase("next");
  }
  widths.erase("next");  // of the legend
  EXPECT_EQ(widths.size(), 8U);
  // Twice the rate, half as wide again.
  EXPECT_NEAR(widths.at("s0.nic0-leaf0: 200 Mbps") / widths.at("leaf0-spine1: 100 Mbps"), 1.5, 0.1);
}

TEST(FabricSvg, SaysWhatTheTiersAreAndCarry) {
  const std::string svg = lab_svg();
  for (const std::string_view text :
       {">4 servers<", ">8 devices<", ">2 leaves<", ">2 spines<", ">200 Mbps each<",
        ">100 Mbps each<", ">2.00 to 1 oversubscribed<", "bisection bandwidth 200 Mbps"})
    EXPECT_THAT(svg, HasSubstr(std::string(text)));
}

std::string racks_svg(int servers, int per_leaf) {
  return fabric_svg(
      cluster_of("fabric: {tiers: [leaf, spine], rails: 4, spines: 8, uplink: 400Gbps, "
                 "servers_per_leaf: " +
                 std::to_string(per_leaf) + "}\nservers: {count: " + std::to_string(servers) +
                 ", type: gb200-nvl72}\n"));
}

TEST(FabricSvg, FramesTheServersOfAScaleUpDomain) {
  const std::string svg = racks_svg(38, 13);
  for (const std::string_view text : {"scale-up domain: s0 to s12<", "scale-up domain: s13 to s25<",
                                      "scale-up domain: s26 to s37<",
                                      ">servers of a scale-up domain<", ">152 devices, 3 domains<"})
    EXPECT_THAT(svg, HasSubstr(std::string(text)));
  EXPECT_THAT(lab_svg(), Not(HasSubstr("scale-up domain")));
  // A server of a domain lies inside a frame of it.
  std::vector<Element> frames;
  std::size_t inside = 0;
  for (const Element& element : elements_of(svg, "rect")) {
    const std::string style = element.attributes.at("class");
    if (style == "domain") frames.push_back(element);
    if (style != "card") continue;
    for (const Element& frame : frames)
      inside += element.number("x") >= frame.number("x") &&
                        element.number("y") >= frame.number("y") &&
                        element.number("x") + element.number("width") <=
                            frame.number("x") + frame.number("width") &&
                        element.number("y") + element.number("height") <=
                            frame.number("y") + frame.number("height")
                    ? 1
                    : 0;
  }
  EXPECT_EQ(inside, 38U);
}

TEST(FabricSvg, CountsTheDomainsOfServersThatItCounts) {
  EXPECT_THAT(racks_svg(288, 36), HasSubstr(">36 servers, 2 domains<"));
}

TEST(FabricSvg, HasColoursForDarkPagesAndAsksForNothing) {
  const std::string svg = lab_svg();
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(svg, Not(HasSubstr("href")));
  EXPECT_THAT(svg, Not(HasSubstr("url(")));
}

TEST(FabricSvg, EscapesNames) {
  topo::Cluster cluster = cluster_of("servers: {count: 1, type: dgx-v100}\n");
  topo::ServerType type = cluster.server_types.at("dgx-v100");
  type.name = "a<b> & \"c\" \x01\n";
  cluster.server_types = {{type.name, type}};
  cluster.servers.front() = {.name = "<s0>", .type = type.name, .address = {}};
  cluster.name = "x<&>'";
  const std::string svg = fabric_svg(cluster);
  EXPECT_FALSE(read_xml(svg).empty());
  EXPECT_THAT(svg, HasSubstr("x&lt;&amp;&gt;&#39;"));
  EXPECT_THAT(svg, HasSubstr("&lt;s0&gt;"));
  EXPECT_THAT(svg, Not(HasSubstr("<b>")));
}

TEST(FabricSvg, SaysHowManyCablesABundleStandsFor) {
  for (const SampleCluster& sample : counted_clusters()) {
    if (sample.name != "many_groups") continue;
    const std::string svg = fabric_svg(cluster_of(sample.yaml));
    EXPECT_THAT(svg, HasSubstr(">a line: 16 cables<"));  // spine to column
    EXPECT_THAT(svg, HasSubstr(">a line: 8 cables<"));   // block to spine
    EXPECT_THAT(svg, HasSubstr(">16384 cables<"));
    EXPECT_THAT(svg, HasSubstr(">13 groups<"));
  }
}

TEST(FabricSvg, DrawsParallelCablesOnceAndPlanesApart) {
  const std::string svg = fabric_svg(cluster_of(
      "server_types: {n: {devices: {count: 2, type: cpu}, nics: {count: 2, rate: 1Gbps}}}\n"
      "fabric: {tiers: [leaf, spine], rails: 2, planes: 2, servers_per_leaf: 1, spines: 2, uplink: "
      "1Gbps, uplink_cables: 3}\n"
      "servers: {count: 2, type: n}\n"));
  EXPECT_THAT(svg, HasSubstr(", 2 planes"));
  EXPECT_THAT(svg, HasSubstr(">12 cables<"));
  EXPECT_THAT(svg, HasSubstr(">a line: 3 cables<"));
  EXPECT_THAT(svg, HasSubstr("leaf2-spine0:"));
  EXPECT_THAT(svg, Not(HasSubstr("leaf2-spine0.1")));
  EXPECT_THAT(svg, Not(HasSubstr("leaf2-spine1")));
}

}  // namespace
}  // namespace regatta::report
