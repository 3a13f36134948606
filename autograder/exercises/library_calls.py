"""The library functions that do in one call what an exercise asks for, under the names by which they are forbidden."""

SCALED_DOT_PRODUCT = "torch.nn.functional.scaled_dot_product_attention"
MULTI_HEAD = "torch.nn.functional.multi_head_attention_forward"
ATTENTION = (SCALED_DOT_PRODUCT, MULTI_HEAD)
ATTENTION_LAYER = (MULTI_HEAD, "torch.nn.MultiheadAttention")
AUTOGRAD = (
    "torch.autograd.grad",
    "torch.autograd.backward",
    "torch.Tensor.backward",
    "torch.autograd.functional.vjp",
    "torch.func.vjp",
)
INSTEAD_OF_AUTOGRAD = "this exercise asks for the chain rule by hand; keep autograd to test your answer"
