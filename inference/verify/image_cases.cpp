#include "inference/formats/json_file.hpp"
#include "inference/verify/families.hpp"
#include "inference/verify/golden_pictures.hpp"
#include "inference/vision/decode.hpp"
#include "inference/vision/placeholder.hpp"
#include "inference/vision/positions.hpp"
#include "inference/vision/sight.hpp"

#include <ATen/ATen.h>

#include <openssl/evp.h>
#include <png.h>

namespace parley::inference::verify {

namespace {

using nlohmann::json;
using vision::patch_grid;
using vision::picture;

std::string sha256(const std::vector<std::uint8_t>& bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (!EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr))
    throw std::runtime_error("SHA-256 failed");
  std::string text;
  for (auto i = 0U; i < size; ++i) {
    text += "0123456789abcdef"[digest[i] / 16];
    text += "0123456789abcdef"[digest[i] % 16];
  }
  return text;
}

at::Tensor as_tensor(const picture& p) {
  return at::tensor(at::ArrayRef<std::uint8_t>(p.rgb), at::kByte).view({p.height, p.width, 3});
}

/// Patches side by side, in the layout of the reference's processor: [3, patch, patch * patches].
at::Tensor side_by_side(const at::Tensor& pixels) {
  return pixels.permute({1, 2, 0, 3}).flatten(2);
}

std::vector<const patch_grid*> pointers(const std::vector<patch_grid>& pieces) {
  std::vector<const patch_grid*> all;
  for (const auto& p : pieces) all.push_back(&p);
  return all;
}

/// Compares with a golden tensor that holds only the first rows.
void close_to_first(case_check& check, const char* what, const at::Tensor& mine, const at::Tensor& golden) {
  auto count = std::min(mine.size(0), golden.size(0));
  check.close(what, mine.narrow(0, 0, count), golden);
}

class replay {
public:
  replay(golden_set& files, const std::string& stem)
      : files_(files), cases_(files.cases(stem)), golden_(files.tensors(stem)), config_(files.config().vision),
        how_(vision::slicing_of(config_)), encoder_(config_, files.view("vpm.")),
        resampler_(config_, files.config().llm.hidden_size, files.view("resampler.")) {}

  void slices(const json& c, case_check& check) {
    auto name = c.at("image").get<std::string>();
    auto most = c.at("max_slice_nums").get<int>();
    auto whole = draw_picture(files_, name);
    auto file = files_.directory() / "img" / (name + ".png");
    if (std::filesystem::exists(file)) check.exact("pixels of the file", read_picture(file).rgb == whole.rgb);
    auto plan = plan_slices({whole.width, whole.height}, most, how_);
    auto grid = plan.grid ? json{plan.grid->columns, plan.grid->rows} : json(nullptr);
    check.equal("grid_cols_rows", grid, c.at("grid_cols_rows"));
    auto sizes = json::array(), hashes = json::array(), patches = json::array();
    auto key = name + "." + std::to_string(most) + ".";
    auto pieces = cut_pieces(whole, plan);
    for (auto i = std::size_t{0}; i < pieces.size(); ++i) {
      sizes.push_back(json::array({pieces[i].width, pieces[i].height}));
      hashes.push_back(sha256(pieces[i].rgb));
      auto cells = to_patches(pieces[i], config_.patch_size);
      patches.push_back(json::array({cells.rows, cells.columns}));
      compare_pixels(pieces[i], cells, key + std::to_string(i), check);
    }
    check.equal("sizes_wh", sizes, c.at("sizes_wh"));
    check.equal("sha256_rgb", hashes, c.at("sha256_rgb"));
    check.equal("tgt_sizes_hw", patches, c.at("tgt_sizes_hw"));
    auto ids = [&](std::optional<std::size_t> number) {
      return json(files_.text().encode(vision::image_placeholder(plan.grid, config_.query_num, number)));
    };
    check.equal("placeholder_ids_no_image_id", ids({}), c.at("placeholder_ids_no_image_id"));
    check.equal("placeholder_ids_image_id3", ids(3), c.at("placeholder_ids_image_id3"));
  }

  void rows(const json& c, case_check& check) {
    auto key = "vis." + c.at("name").get<std::string>();
    std::vector<patch_grid> pieces;
    auto sizes = json::array();
    for (const auto& name : c.at("images"))
      for (auto& piece : cut_picture(files_, name, c.at("max_slice_nums")).pieces) {
        sizes.push_back(json::array({piece.rows, piece.columns}));
        pieces.push_back(std::move(piece));
      }
    check.equal("tgt_sizes_hw", sizes, c.at("tgt_sizes_hw"));
    auto all = pointers(pieces);
    vision::encoder_trace trace;
    auto seen = encoder_.encode(all, &trace);
    auto begin = std::int64_t{0};
    for (auto i = std::size_t{0}; i < pieces.size(); begin += pieces[i++].patches()) {
      auto mine = key + "." + std::to_string(i);
      auto own = [&](const at::Tensor& rows) { return rows.narrow(0, begin, pieces[i].patches()); };
      if (golden_.has(mine + ".embed"))
        close_to_first(check, "embed", own(trace.embedded), golden_.tensor(mine + ".embed"));
      if (golden_.has(mine + ".vpm_last"))
        close_to_first(check, "vpm_last", own(seen), golden_.tensor(mine + ".vpm_last"));
      if (golden_.has(key + ".position_ids")) {
        auto places = vision::position_ids(pieces[i].rows, pieces[i].columns, table_side()).to(at::kInt);
        auto golden = golden_.tensor(key + ".position_ids")[static_cast<std::int64_t>(i)];
        auto padded = at::constant_pad_nd(places, {0, golden.size(0) - places.size(0)});
        check.exact("position_ids", at::equal(padded, golden));
      }
    }
    auto mine = resampler_.resample(seen, all);
    check.equal("out_shape", json(mine.sizes().vec()), c.at("out_shape"));
    compare_rows(mine, key + ".resampler", check);
  }

  void buckets(const json& by_count, case_check& check) {
    for (const auto& [count, expected] : by_count.items()) {
      auto mine = vision::bucket_coordinates(std::stoll(count), table_side());
      check.exact(count, at::equal(mine, at::tensor(expected.get<std::vector<std::int64_t>>())));
    }
  }

  /// Alpha is dropped, not blended.
  void alpha(const json& expected, case_check& check) {
    auto whole = draw_picture(files_, cases_.at("slicing").at(0).at("image"));
    std::vector<std::uint8_t> rgba;
    for (auto i = std::size_t{0}; i < whole.rgb.size(); i += 3)
      rgba.insert(rgba.end(), {whole.rgb[i], whole.rgb[i + 1], whole.rgb[i + 2], static_cast<std::uint8_t>(i)});
    png_image header = {};
    header.version = PNG_IMAGE_VERSION;
    header.width = static_cast<png_uint_32>(whole.width);
    header.height = static_cast<png_uint_32>(whole.height);
    header.format = PNG_FORMAT_RGBA;
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(header);
    std::string file(size, '\0');
    if (!png_image_write_to_memory(&header, file.data(), &size, 0, rgba.data(), 0, nullptr))
      throw std::runtime_error(header.message);
    file.resize(size);
    auto decoded = vision::decode_picture(file);
    check.equal("same", decoded && decoded->rgb == whole.rgb, expected.get<bool>());
  }

private:
  std::int64_t table_side() const { return config_.image_size / config_.patch_size; }

  void compare_pixels(const picture& piece, const patch_grid& cells, const std::string& key, case_check& check) {
    if (golden_.has("u8." + key)) check.exact("u8", at::equal(as_tensor(piece), golden_.tensor("u8." + key)));
    for (const auto& name : golden_.names()) {
      if (!name.starts_with("pixel_values." + key + ".")) continue;
      vision::encoder_trace trace;
      const auto* one = &cells;
      encoder_.encode({&one, 1}, &trace);
      auto golden = golden_.tensor(name);
      auto mine = side_by_side(trace.pixels).cpu();
      check.exact("pixel_values", at::equal(mine.narrow(2, 0, std::min(mine.size(2), golden.size(2))), golden));
    }
  }

  /// Compares all rows of each piece, or those listed in the name of the golden tensor: "..._q0_q31".
  void compare_rows(const at::Tensor& rows, const std::string& key, case_check& check) {
    auto found = false;
    for (const auto& name : golden_.names()) {
      if (!name.starts_with(key) || (name.size() > key.size() && name[key.size()] != '_')) continue;
      std::vector<std::int64_t> numbers;
      for (auto at = name.find("_q", key.size()); at != std::string::npos; at = name.find("_q", at + 2))
        numbers.push_back(std::stoll(name.substr(at + 2)));
      auto mine = numbers.empty() ? rows : rows.cpu().index_select(1, at::tensor(numbers));
      check.close("resampler", mine, golden_.tensor(name));
      found = true;
    }
    check.exact("no recorded rows", found);
  }

  golden_set& files_;
  const json& cases_;
  const safetensors_file& golden_;
  const vision_config& config_;
  vision::slicing how_;
  vision::encoder encoder_;
  vision::resampler resampler_;
};

} // namespace

void replay_image(golden_set& files, const std::string& stem, report& out) {
  replay images(files, stem);
  auto run = [&](const std::string& name, const json& c, void (replay::*method)(const json&, case_check&)) {
    out.run(stem, name, thinker_tolerance, [&](case_check& check) { (images.*method)(c, check); });
  };
  for (const auto& [section, content] : files.cases(stem).items()) {
    if (section == "procedural") continue; // describes how the pictures are drawn
    if (section == "bucket_coords_by_n_patches") {
      run(section, content, &replay::buckets);
    } else if (section == "rgba_same_as_rgb") {
      run(section, content, &replay::alpha);
    } else if (section == "slicing" || section == "vision") {
      for (std::size_t i = 0; i < content.size(); ++i)
        run(section + "." + std::to_string(i), content[i], section == "slicing" ? &replay::slices : &replay::rows);
    } else {
      out.unknown(stem, section);
    }
  }
}

} // namespace parley::inference::verify
