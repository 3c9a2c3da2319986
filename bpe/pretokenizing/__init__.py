"""How text is cut into pre-tokens: schemes, certain cuts, Unicode classes and normal forms."""
