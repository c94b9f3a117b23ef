# Runs in a kernel before its first cell: counts the assertions that pass in each cell.
def _count_assertions():
    import ast
    import builtins

    def passed():
        passed.count += 1

    def start_cell(*_):
        passed.count = 0

    class Counter(ast.NodeTransformer):
        def visit_Assert(self, node):
            call = ast.parse("__assertion_passed__()").body[0]
            for part in ast.walk(call):
                ast.copy_location(part, node)
            return [node, call]

    start_cell()
    builtins.__assertion_passed__ = passed
    shell = get_ipython()  # noqa: F821
    shell.ast_transformers.append(Counter())
    shell.events.register("pre_run_cell", start_cell)


_count_assertions()
del _count_assertions
