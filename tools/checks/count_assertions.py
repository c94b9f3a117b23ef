# Runs in a kernel before its first cell: counts the assertions that pass in its cells.
def _count_assertions():
    import ast
    import builtins

    def passed():
        passed.count += 1

    class Counter(ast.NodeTransformer):
        def visit_Assert(self, node):
            call = ast.parse("__assertion_passed__()").body[0]
            for part in ast.walk(call):
                ast.copy_location(part, node)
            return [node, call]

    passed.count = 0
    builtins.__assertion_passed__ = passed
    get_ipython().ast_transformers.append(Counter())  # noqa: F821


_count_assertions()
del _count_assertions
