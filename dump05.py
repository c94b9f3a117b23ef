import nbformat,sys
nb=nbformat.read(sys.argv[1],4)
a,b=int(sys.argv[2]),int(sys.argv[3])
import re
for i,c in enumerate(nb.cells[a:b],a):
    print(f"\n===== [{i}] {c.cell_type} id={c.id} tags={c.metadata.get('tags')} md={ {k:v for k,v in c.metadata.items() if k not in('tags','jupyter')} }")
    s=c.source
    s=re.sub(r"(?ms)^# >>> (.*?)$.*?^# <<<", r"# >>> \1 ... <<<", s)
    print(s)
    if c.cell_type=='code':
        for o in c.outputs:
            if o.output_type=='stream': print('--- out',o.name); print(o.text)
            elif o.output_type=='error': print('--- ERR',o.ename,o.evalue)
            else: print('--- data', list(o.data.keys())); print(o.data.get('text/plain','')[:300])
