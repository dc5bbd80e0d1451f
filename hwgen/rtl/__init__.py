"""The datapaths: operand decoder, dot product, scale product, accumulator, element, tensor core."""
