"""How do agents of other makers keep within their windows?"""
