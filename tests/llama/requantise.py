#!/usr/bin/env python3
"""Makes a model file of another type out of one with real weights: requantise.py IN.gguf OUT.gguf TYPE

TYPE is a type of tensors, which all matrices then have (`Q5_0`, `IQ4_XS`, `BF16`), or `Q3_K_M`, `Q4_K_M` or `Q5_K_M`,
which gives the output `Q6_K` and half of the values and of the last matrices of layers a finer type, about as llama.cpp does.
llama.cpp's own code quantises, without an importance matrix. What the weights of IN have lost stays lost, so OUT answers no
better than IN. Vectors and metadata are copied. Rows must be whole blocks of the type.
"""

import ctypes
import pathlib
import sys
from concurrent.futures import ThreadPoolExecutor

import gguf
import numpy
import xllamacpp
from gguf import GGMLQuantizationType as Type

# Numbers that are quantised at a time by each thread.
PART = 1 << 22

MIXTURES = {
    "Q3_K_M": (Type.Q3_K, Type.Q4_K),
    "Q4_K_M": (Type.Q4_K, Type.Q6_K),
    "Q5_K_M": (Type.Q5_K, Type.Q6_K),
}


def llama():
    """Returns llama.cpp, which is in the extension module, with the types of what is called."""
    library = ctypes.CDLL(str(next(pathlib.Path(xllamacpp.__file__).parent.glob("xllamacpp*.so"))))
    library.ggml_quantize_chunk.restype = ctypes.c_size_t
    library.ggml_quantize_chunk.argtypes = [
        ctypes.c_int,
        ctypes.c_void_p,
        ctypes.c_void_p,
        *[ctypes.c_int64] * 3,
        ctypes.c_void_p,
    ]
    return library


def type_of(name, shape, layers, wanted):
    """Returns the type that a tensor of OUT has. `shape` has the length of a row last."""
    if len(shape) < 2:
        return Type.F32
    if wanted not in MIXTURES:
        return Type[wanted]
    usual, finer = MIXTURES[wanted]
    if name == "output.weight":
        return Type.Q6_K
    if any(part in name for part in ("attn_v.weight", "ffn_down.weight")):
        layer = int(name.split(".")[1])
        if layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2:
            return finer
    return usual


def quantised(library, pool, numbers, kind):
    """Returns the bytes of a matrix of `f32` numbers, row by row."""
    rows, columns = numbers.shape
    block, size = gguf.GGML_QUANT_SIZES[kind]
    if columns % block:
        sys.exit(f"rows of {columns} numbers are no whole blocks of {kind.name}, which have {block}")
    if kind in (Type.F32, Type.F16, Type.BF16):
        return gguf.quantize(numbers, kind)
    found = numpy.empty((rows, columns // block * size), numpy.uint8)

    def quantise(first):
        last = min(first + step, rows)
        source = numpy.ascontiguousarray(numbers[first:last])
        target = found[first:last]
        library.ggml_quantize_chunk(kind, source.ctypes.data, target.ctypes.data, 0, last - first, columns, None)

    step = max(1, PART // columns)
    list(pool.map(quantise, range(0, rows, step)))
    return found


def file_type(wanted):
    """Returns the number for `general.file_type`."""
    names = (f"MOSTLY_{wanted}", f"MOSTLY_{wanted}_S", f"ALL_{wanted}")
    return next(gguf.LlamaFileType[name] for name in names if name in gguf.LlamaFileType.__members__)


def copy_metadata(reader, writer, wanted):
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name in ("general.architecture", "general.file_type"):
            continue
        kind = field.types[0]
        of = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub_type=of)
    writer.add_file_type(file_type(wanted))


def main(arguments):
    if len(arguments) != 3 or arguments[2] not in {*MIXTURES, *Type.__members__}:
        sys.exit(__doc__)
    source, out, wanted = arguments
    reader = gguf.GGUFReader(source)
    architecture = reader.fields["general.architecture"].contents()
    layers = reader.fields[f"{architecture}.block_count"].contents()
    writer = gguf.GGUFWriter(out, architecture)
    copy_metadata(reader, writer, wanted)
    kinds = {}
    for tensor in reader.tensors:
        # The reader has the length of a row first.
        shape = [int(size) for size in reversed(tensor.shape)]
        kind = kinds[tensor.name] = type_of(tensor.name, shape, layers, wanted)
        block, size = gguf.GGML_QUANT_SIZES[kind]
        bytes_shape = [*shape[:-1], shape[-1] // block * size]
        writer.add_tensor_info(tensor.name, bytes_shape, numpy.dtype(numpy.uint8), numpy.prod(bytes_shape), kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    library = llama()
    with ThreadPoolExecutor() as pool:
        for tensor in reader.tensors:
            numbers = gguf.dequantize(tensor.data, tensor.tensor_type).astype(numpy.float32)
            matrix = numbers.reshape(-1, numbers.shape[-1])
            kind = kinds[tensor.name]
            same = kind == tensor.tensor_type
            data = tensor.data.view(numpy.uint8) if same else quantised(library, pool, matrix, kind)
            writer.write_tensor_data(data)
    writer.close()


if __name__ == "__main__":
    main(sys.argv[1:])
