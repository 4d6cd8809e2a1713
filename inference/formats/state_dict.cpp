#include "inference/formats/state_dict.hpp"

#include "inference/formats/file_problem.hpp"

#include <ATen/ATen.h>
#include <caffe2/serialize/inline_container.h>

#include <bit>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace parley::inference::speech {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw std::runtime_error(why);
}

enum class kind { none, boolean, integer, real, text, tuple, list, dict, global, storage, tensor, mark };

struct value;
using value_ptr = value*; ///< valid as long as the unpickler

struct value {
  kind is = kind::none;
  std::int64_t integer = 0;
  std::string text;             ///< a string; for a global "module.name"
  std::vector<value_ptr> items; ///< the items of a tuple or list; for a dict key, value, key, value, …
  at::Tensor tensor;            ///< a tensor; for a storage a flat one
};

at::ScalarType storage_type(std::string_view name) {
  static const std::unordered_map<std::string_view, at::ScalarType> types{
      {"torch.FloatStorage", at::kFloat},       {"torch.DoubleStorage", at::kDouble}, {"torch.HalfStorage", at::kHalf},
      {"torch.BFloat16Storage", at::kBFloat16}, {"torch.LongStorage", at::kLong},     {"torch.IntStorage", at::kInt},
      {"torch.ShortStorage", at::kShort},       {"torch.CharStorage", at::kChar},     {"torch.ByteStorage", at::kByte},
      {"torch.BoolStorage", at::kBool}};
  auto found = types.find(name);
  if (found == types.end()) refuse("storage type \"" + std::string(name) + "\" is not known");
  return found->second;
}

/// The archive's records. No record may be larger than the archive, because torch stores records uncompressed.
class archive {
public:
  explicit archive(const std::filesystem::path& file)
      : limit_(std::filesystem::file_size(file)), reader_(file.string()) {}

  std::uintmax_t bytes() const { return limit_; }

  std::tuple<at::DataPtr, std::size_t> record(const std::string& name) {
    if (!reader_.hasRecord(name)) refuse("the archive has no record \"" + name + "\"");
    if (reader_.getRecordSize(name) > limit_) refuse("record \"" + name + "\" is larger than its archive");
    return reader_.getRecord(name);
  }

private:
  std::uintmax_t limit_;
  caffe2::serialize::PyTorchStreamReader reader_;
};

/// A pickle machine that accepts only a fixed set of globals.
class unpickler {
  static constexpr std::size_t most_code = 16 << 20; ///< a value takes far more memory than the operation that makes it

public:
  explicit unpickler(archive& records) : records_(records) {
    auto [data, size] = records_.record("data.pkl");
    if (size > most_code) refuse("its pickle has more than " + std::to_string(most_code) + " bytes");
    code_.assign(static_cast<const char*>(data.get()), size);
  }

  value_ptr run();

private:
  template<class T>
  T number() {
    T result;
    std::memcpy(&result, bytes(sizeof(T)).data(), sizeof(T));
    return result;
  }

  std::string_view bytes(std::uint64_t n) {
    if (n > code_.size() - at_) refuse("the pickle ends too early");
    auto result = std::string_view(code_).substr(at_, n);
    at_ += n;
    return result;
  }

  std::string line() {
    auto end = code_.find('\n', at_);
    if (end == std::string::npos) refuse("the pickle ends too early");
    auto result = code_.substr(at_, end - at_);
    at_ = end + 1;
    return result;
  }

  value& top() {
    if (stack_.empty()) refuse("the pickle takes from an empty stack");
    return *stack_.back();
  }

  value_ptr pop() {
    top();
    auto* result = stack_.back();
    stack_.pop_back();
    return result;
  }

  std::vector<value_ptr> pop_to_mark() {
    auto mark = stack_.size();
    while (mark > 0 && stack_[mark - 1]->is != kind::mark) --mark;
    if (mark == 0) refuse("the pickle has no mark");
    std::vector<value_ptr> result(stack_.begin() + static_cast<std::ptrdiff_t>(mark), stack_.end());
    stack_.resize(mark - 1);
    return result;
  }

  value_ptr make(kind is) {
    values_.emplace_back().is = is;
    return &values_.back();
  }

  void push(value_ptr made) { stack_.push_back(made); }

  void push_integer(std::int64_t n, kind is = kind::integer) {
    push(make(is));
    top().integer = n;
  }

  void push_text(std::string text, kind is = kind::text) {
    push(make(is));
    top().text = std::move(text);
  }

  void push_tuple(std::vector<value_ptr> items) {
    push(make(kind::tuple));
    top().items = std::move(items);
  }

  void push_tuple_of(std::size_t n) {
    std::vector<value_ptr> items(n);
    for (auto i = n; i-- > 0;) items[i] = pop();
    push_tuple(std::move(items));
  }

  void remember(std::uint32_t where) {
    top();
    memo_[where] = stack_.back();
  }

  void recall(std::uint32_t where) {
    auto found = memo_.find(where);
    if (found == memo_.end()) refuse("the pickle refers to nothing");
    push(found->second);
  }

  void append(std::vector<value_ptr> items, kind to) {
    auto& target = top();
    if (target.is != to || (to == kind::dict && items.size() % 2 != 0))
      refuse("the pickle adds to what is no container");
    target.items.insert(target.items.end(), items.begin(), items.end());
  }

  void long_integer();
  void persistent_storage();
  void call();
  value_ptr rebuild_tensor(const std::vector<value_ptr>& arguments);

  archive& records_;
  std::string code_;
  std::size_t at_ = 0;
  std::deque<value> values_; ///< owns all values: if they owned each other, destroying them would recurse to any depth
  std::vector<value_ptr> stack_;
  std::unordered_map<std::uint32_t, value_ptr> memo_;
  std::unordered_map<std::string, at::Tensor> storages_;
  std::uintmax_t made_bytes_ = 0; ///< of all tensors
};

void unpickler::long_integer() {
  const auto size = number<std::uint8_t>();
  if (size > 8) refuse("an integer of more than 64 bits");
  const auto raw = bytes(size);
  std::uint64_t n = 0;
  for (std::size_t i = 0; i < size; ++i) n |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(raw[i])) << (8 * i);
  if (size > 0 && size < 8 && (static_cast<std::uint8_t>(raw[size - 1]) & 0x80U)) n |= ~std::uint64_t{0} << (8 * size);
  push_integer(static_cast<std::int64_t>(n));
}

/// ('storage', type, key, location, number of elements)
void unpickler::persistent_storage() {
  const auto* id = pop();
  if (id->items.size() < 5 || id->items[0]->text != "storage") refuse("a persistent id that is no storage");
  const auto type = storage_type(id->items[1]->text);
  const auto& key = id->items[2]->text;
  auto& tensor = storages_[key];
  if (!tensor.defined()) {
    auto [data, size] = records_.record("data/" + key);
    tensor = at::empty({static_cast<std::int64_t>(size / c10::elementSize(type))}, type);
    std::memcpy(tensor.data_ptr(), data.get(), tensor.nbytes());
  } else if (tensor.scalar_type() != type) {
    refuse("a storage of two types");
  }
  push(make(kind::storage));
  top().tensor = tensor;
}

/// (storage, offset, size, stride, requires_grad, hooks)
value_ptr unpickler::rebuild_tensor(const std::vector<value_ptr>& arguments) {
  if (arguments.size() < 4 || arguments[0]->is != kind::storage ||
      arguments[2]->items.size() != arguments[3]->items.size())
    refuse("a tensor that can't be rebuilt");
  const auto& storage = arguments[0]->tensor;
  const auto offset = arguments[1]->integer;
  std::vector<std::int64_t> sizes, strides;
  auto last = offset; // index of the last element that the tensor uses
  bool empty = false;
  for (std::size_t i = 0; i < arguments[2]->items.size(); ++i) {
    const auto size = arguments[2]->items[i]->integer, stride = arguments[3]->items[i]->integer;
    std::int64_t step = 0;
    if (size < 0 || stride < 0 || (size > 0 && __builtin_mul_overflow(size - 1, stride, &step)) ||
        __builtin_add_overflow(last, step, &last))
      refuse("a tensor outside its storage");
    empty = empty || size == 0;
    sizes.push_back(size);
    strides.push_back(stride);
  }
  if (offset < 0 || (!empty && last >= storage.numel())) refuse("a tensor outside its storage");
  std::int64_t elements = 1;
  for (auto size : sizes)
    if (__builtin_mul_overflow(elements, size, &elements)) refuse("a tensor outside its storage");
  if (elements > storage.numel()) // stride 0 could make it huge; real state dicts never do that
    refuse("a tensor larger than its storage");
  // Tensors may share storages, but hardly more than once: each that is not stored in order is copied.
  made_bytes_ += static_cast<std::uintmax_t>(elements) * c10::elementSize(storage.scalar_type());
  if (made_bytes_ > 4 * records_.bytes()) refuse("its tensors are several times as large as the file");
  auto* made = make(kind::tensor);
  made->tensor = empty ? at::empty(sizes, storage.options()) : storage.as_strided(sizes, strides, offset).contiguous();
  return made;
}

void unpickler::call() {
  const auto *arguments = pop(), *function = pop();
  if (function->is != kind::global) refuse("the pickle calls what is no function");
  if (function->text == "collections.OrderedDict" && arguments->items.empty())
    push(make(kind::dict));
  else if (function->text == "torch._utils._rebuild_tensor_v2")
    push(rebuild_tensor(arguments->items));
  else if (function->text == "torch._utils._rebuild_parameter" && !arguments->items.empty())
    push(arguments->items[0]);
  else
    refuse("the pickle calls \"" + function->text + "\"");
}

value_ptr unpickler::run() {
  for (;;) {
    const auto code = number<std::uint8_t>();
    switch (code) {
    case 0x80: number<std::uint8_t>(); break;  // PROTO
    case 0x95: number<std::uint64_t>(); break; // FRAME
    case '(': push(make(kind::mark)); break;
    case ')': push(make(kind::tuple)); break;
    case ']': push(make(kind::list)); break;
    case '}': push(make(kind::dict)); break;
    case 'N': push(make(kind::none)); break;
    case 0x88: push_integer(1, kind::boolean); break;
    case 0x89: push_integer(0, kind::boolean); break;
    case 'K': push_integer(number<std::uint8_t>()); break;
    case 'M': push_integer(number<std::uint16_t>()); break;
    case 'J': push_integer(number<std::int32_t>()); break;
    case 0x8a: long_integer(); break;
    case 'G': // big-endian double; occurs only in attributes of the dict, which are dropped
      number<std::uint64_t>();
      push(make(kind::real));
      break;
    case 'X': push_text(std::string(bytes(number<std::uint32_t>()))); break;
    case 0x8c: push_text(std::string(bytes(number<std::uint8_t>()))); break;
    case 0x8d: push_text(std::string(bytes(number<std::uint64_t>()))); break;
    case 'q': remember(number<std::uint8_t>()); break;
    case 'r': remember(number<std::uint32_t>()); break;
    case 0x94: remember(static_cast<std::uint32_t>(memo_.size())); break;
    case 'h': recall(number<std::uint8_t>()); break;
    case 'j': recall(number<std::uint32_t>()); break;
    case 'c': {
      auto module = line();
      push_text(module + "." + line(), kind::global);
      break;
    }
    case 0x93: {
      const auto *name = pop(), *module = pop();
      push_text(module->text + "." + name->text, kind::global);
      break;
    }
    case 't': push_tuple(pop_to_mark()); break;
    case 0x85: push_tuple_of(1); break;
    case 0x86: push_tuple_of(2); break;
    case 0x87: push_tuple_of(3); break;
    case 's': {
      auto *item = pop(), *key = pop();
      append({key, item}, kind::dict);
      break;
    }
    case 'u': {
      auto items = pop_to_mark();
      append(std::move(items), kind::dict);
      break;
    }
    case 'a': append({pop()}, kind::list); break;
    case 'e': {
      auto items = pop_to_mark();
      append(std::move(items), kind::list);
      break;
    }
    case 'Q': persistent_storage(); break;
    case 'R': call(); break;
    case 'b': pop(); break; // BUILD: attributes of the dict (`_metadata`), which are ignored
    case '.': return pop();
    default: refuse("pickle operation " + std::to_string(code) + " is not known");
    }
  }
}

} // namespace

tensor_map read_state_dict(const std::filesystem::path& file) {
  if (const auto problem = file_problem(file); problem && *problem != is_missing)
    throw std::runtime_error(file.string() + ": " + *problem);
  try {
    archive records(file);
    unpickler machine(records);
    const auto* root = machine.run();
    if (root->is != kind::dict) refuse("holds no dict");
    tensor_map result(file.string());
    for (std::size_t i = 0; i + 1 < root->items.size(); i += 2) {
      if (root->items[i]->is != kind::text || root->items[i + 1]->is != kind::tensor)
        refuse("holds more than named tensors");
      result.put(root->items[i]->text, root->items[i + 1]->tensor);
    }
    return result;
  } catch (const c10::Error& error) {
    throw std::runtime_error(file.string() + ": " + error.what_without_backtrace());
  } catch (const std::exception& error) {
    throw std::runtime_error(file.string() + ": " + error.what());
  }
}

} // namespace parley::inference::speech
