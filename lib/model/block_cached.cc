// The forward pass of a block over cached keys and values. They are cached as attention reads them:
// after norms and positions.
#include "lib/model/block.h"

namespace gxp {
namespace {

// Rows of the cache, from position `first` on.
void store(Ops& ops, const Tensor& cache, const Tensor& made, size_t first) {
  const size_t rows = made.shape.rows(), columns = made.shape.columns();
  const Tensor all = cache.reshape({cache.count() / columns, columns});
  ops.convert(all.rows(first, rows), made.reshape({rows, columns}));
}

}  // namespace

void DecoderBlock::extend(const UnitTensors& t, size_t layer, const KeyValueCache& past,
                          size_t first) {
  const Tensor hidden = begin_forward(t);
  const GroupedHeads<Tensor> heads = make_heads(t, layer, first);
  store(ops_, past.keys, heads.keys, first);
  if (!d_.has_one_qkv()) store(ops_, past.values, heads.values, first);
  if (first == 0) {
    attend(t, layer);
  } else {
    const Tensor out = attention(t);
    ops_.attention_cached(
        out.reshape({t.input.shape[0], t.input.shape[1], out.shape.columns()}),
        {heads.queries, past.keys, past.values, heads.heads, heads.kv_heads, heads.layout}, first,
        scores(layer));
  }
  make_rest(t, hidden);
  add_outputs(t, hidden);
}

}  // namespace gxp
