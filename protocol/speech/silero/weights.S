// The network's weights as they are in the file.
    .section .rodata
    .global parley_silero_weights
    .balign 16
parley_silero_weights:
    .incbin PARLEY_SILERO_WEIGHTS
    .section .note.GNU-stack, "", %progbits
