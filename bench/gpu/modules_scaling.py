"""Tasks with awkward sizes and kernels through `cutegen describe`: does scaling break one, and how long does it take?

    python3 bench/gpu/modules_scaling.py CUTEGEN OUT.jsonl [JOBS]        a row for each of the tasks below; no GPU is used
    python3 bench/gpu/modules_scaling.py table OUT.jsonl

CUTEGEN keeps its oracles warm, so seconds are those of one description, without the start of Python and PyTorch. With CPU=1
nothing is kept warm and seconds are those of the processor, less what a task of one operator takes: for a machine that does
other things as well. A task is broken where its forward runs as written and its description does not come.
"""
import concurrent.futures
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import modules_tasks

# inputs | statements; result | layers
TASKS = """
x=8,3,224,224|self.c(x)|c=nn.Conv2d(3,64,7,2,3)
x=8,3,224,224|self.c(x)|c=nn.Conv2d(3,16,(31,5),padding=(15,2))
x=4,16,200,200|F.max_pool2d(self.c(x),99,stride=50)|c=nn.Conv2d(16,16,3)
x=2,8,512,512|F.avg_pool2d(x,128)|
x=16,64,64,64|self.c(x)|c=nn.Conv2d(64,64,3,dilation=20)
x=16,64,32,32|self.c(x)|c=nn.ConvTranspose2d(64,32,5,3,2,1)
x=4,8,16,64,64|self.c(x)|c=nn.Conv3d(8,8,(9,7,5))
x=64,1,16000|self.c(x)|c=nn.Conv1d(1,32,400,160)
x=64,8,4096|F.max_pool1d(F.relu(self.c(x)),1000)|c=nn.Conv1d(8,8,1023)
x=16,96,56,56|self.c(x)|c=nn.Conv2d(96,96,7,padding=3,groups=96)
x=16,3,227,227|F.max_pool2d(F.relu(self.a(x)),3,2).flatten(1)@self.w|a=nn.Conv2d(3,96,11,4);w=nn.Parameter(torch.randn(69984,16)*0.01)
x=1024,7|y=x;[y:=torch.tanh(self.l(y)) for _ in range(60)];y|l=nn.Linear(7,7)
x=4096,3|self.m(x)|m=nn.Sequential(*[m for _ in range(30) for m in (nn.Linear(3,3),nn.ReLU())])
x=128,1000|self.m(x)|m=nn.Sequential(nn.Linear(1000,2000),nn.ReLU(),nn.Linear(2000,2000),nn.ReLU(),nn.Linear(2000,10))
x=512,10,128|self.r(x)[0]|r=nn.LSTM(128,256,6,batch_first=True,dropout=0.0)
x=10,512,128|self.r(x)[1]|r=nn.GRU(128,256,3,bidirectional=True)
x=256,64,33|self.r(x)[0]|r=nn.RNN(33,77)
x=64,197,768|self.t(x)|t=nn.TransformerEncoderLayer(768,12,3072,batch_first=True,dropout=0.0)
x=32,128,512|self.a(x,x,x)[0]|a=nn.MultiheadAttention(512,8,batch_first=True)
x=8,56,56,96|y=x.view(8,8,7,8,7,96).permute(0,1,3,2,4,5).reshape(-1,49,96);torch.softmax(y@y.transpose(1,2),2)@y|
x=8,64,128,128|F.pixel_shuffle(x,8)|
x=8,4,512,512|F.pixel_unshuffle(x,16)|
x=16,32,128,128|F.unfold(x,9,stride=7)|
x=8,144,900|F.fold(x,(64,64),(3,3),stride=2,padding=0) if False else x.view(8,16,9,900).sum(2)|
x=16,1000|x.view(16,8,125).softmax(2).reshape(16,1000)|
x=31,997|x.reshape(-1)[::7].sum()+x|
x=3,5,7,11,13|x.permute(4,2,0,3,1).reshape(13*7,-1).cumsum(1)|
x=4096,4095|x.softmax(1)|
x=1,50257|F.log_softmax(x,1)|
i=index(50257),64,1024|self.e(i).sum(1)|e=nn.Embedding(50257,64)
i=index(1000),4096|self.e(i,torch.arange(0,4096,16))|e=nn.EmbeddingBag(1000,64,mode='mean')
x=64,512,14,14|F.adaptive_avg_pool2d(x,(7,7))+F.adaptive_avg_pool2d(x,1)|
x=64,100,75|F.interpolate(x,size=211,mode='linear')|
x=2,3,1080,1920|F.interpolate(x,size=(224,224),mode='bilinear')|
x=16,64,33,65|F.pad(x,(31,30,15,14),mode='reflect')|
x=16,8,64,64|F.pad(x,(40,40,9,9),mode='circular')|
x=2048,2048;y=2048,2048|(x@y)[:1000,17:1041:3].sum(0)|
x=128,4096;y=4096,1|x@y|
x=512,512,512|torch.einsum('bij,bkj->bik',x,x).amax((0,2))|
x=64,3,224,224|self.p(x).flatten(2).transpose(1,2)+self.e|p=nn.Conv2d(3,192,16,16);e=nn.Parameter(torch.randn(1,196,192))
x=256,256|torch.linalg.inv(x[:32,:32]+40*torch.eye(32))|
x=64,24|torch.fft.rfft(x,dim=1).abs()|
x=16,128,128|torch.tril(x)@torch.triu(x)|
x=100000|torch.sort(x)[0]+torch.cumsum(x,0)|
x=64,10000|torch.topk(x,500,1)[0]|
x=64,10000|torch.quantile(x,0.9,dim=1)|
x=4096,1024;i=index(4096),16384;y=16384,1024|torch.index_add(x,0,i,y)|
x=64,1000,6|y=torch.stack([x[:,k*100:(k+1)*100].mean(1) for k in range(10)],1);y.flatten(1)|
x=16,30,40|[y:=x]+[y:=F.layer_norm(y+F.gelu(self.l(y)),(40,)) for _ in range(12)];y|l=nn.Linear(40,40)
x=64,512,7,7|self.b(self.a(x)).flatten(1)@self.w|a=nn.Conv2d(512,512,3,padding=1);b=nn.BatchNorm2d(512);w=nn.Parameter(torch.randn(25088,8)*0.01)
x=32,3,32,32|x=self.a(x);x=F.avg_pool2d(x,8);x.view(-1,64*16)|a=nn.Conv2d(3,64,3,padding=1)
x=8,1,28,28|x=F.max_pool2d(F.relu(self.a(x)),2);x=F.max_pool2d(F.relu(self.b(x)),2);self.c(x.view(-1,256))|a=nn.Conv2d(1,6,5);b=nn.Conv2d(6,16,5);c=nn.Linear(256,10)
x=4,1,256,256|self.d(F.relu(self.c(x)))+x|c=nn.Conv2d(1,32,63,padding=31);d=nn.Conv2d(32,1,1)
x=128,50,20|self.r(x)[0][:,-1]@self.w|r=nn.LSTM(20,30,batch_first=True);w=nn.Parameter(torch.randn(30,5))
x=64,2048|assert x.shape[1]%64==0;x.view(64,32,64).amax(2)|
x=64,768|h=x.view(64,12,64);(h*h.mean(2,keepdim=True)).reshape(64,768)|
x=16,256,65|self.c(F.pad(x,(4,0)))[...,:65]*torch.sigmoid(x)|c=nn.Conv1d(256,256,5)
x=2,1,100,100|sum(F.conv2d(x,torch.ones(1,1,k,k)/k/k,padding=k//2).mean() for k in (3,11,33,65))|
x=1000,1000|x[500:,250:750].t()@x[:500]|
x=65536,17|F.normalize(x,dim=1)@F.normalize(x[:100],dim=1).t()|
"""


def forward_runs(path):
    code = f"import runpy, torch; t = runpy.run_path({str(path)!r}); torch.no_grad().__enter__(); t['Model'](*t['get_init_inputs']())(*t['get_inputs']())"
    return subprocess.run([os.environ.get("CUTEGEN_PYTHON", sys.executable), "-c", code], capture_output=True).returncode == 0


def describe(cutegen, path, runtime):
    cpu = bool(os.environ.get("CPU"))
    env = {**os.environ, "CUTEGEN_RUNTIME": runtime, "CUTEGEN_SERVER": "no" if cpu else "yes"}
    began, before = time.time(), resource.getrusage(resource.RUSAGE_CHILDREN)
    made = subprocess.run([cutegen, "describe", str(path), "--device", "simt", "--json"], capture_output=True, text=True, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return made, round(spent if cpu else time.time() - began, 2)


def work(cutegen, folder, share, number):
    runtime, rows = tempfile.mkdtemp(), []
    start = describe(cutegen, folder / "warm.py", runtime)[1]
    for name in share:
        made, seconds = describe(cutegen, folder / f"{name}.py", runtime)
        seconds = round(max(seconds - start, 0), 2) if os.environ.get("CPU") else seconds
        row = {"name": name, "seconds": seconds, "ok": made.returncode == 0}
        if row["ok"]:
            row["scaled"] = json.loads(made.stdout).get("scaled")
        else:
            row["why"], row["runs"] = made.stderr.strip().splitlines()[:1], forward_runs(folder / f"{name}.py")
        rows.append(row)
        print(json.dumps(row)[:200], flush=True)
    subprocess.run([cutegen, "server", "stop"], capture_output=True, env={**os.environ, "CUTEGEN_RUNTIME": runtime})
    return rows


def table(path):
    rows = [json.loads(text) for text in open(path)]
    words = dict(zip((f"s{k:02d}" for k in range(1, 100)), TASKS.strip().splitlines()))
    print("| task | seconds | scaled | |\n|---|---|---|---|")
    for r in sorted(rows, key=lambda r: r["name"]):
        scaled = ", ".join(f"{k} {a}->{b}" for k, (a, b) in (r.get("scaled") or {}).items()) if isinstance(r.get("scaled"), dict) else ""
        note = "" if r["ok"] else ("broken: " if r["runs"] else "does not run: ") + " ".join(r["why"])[:120].replace("|", "/")
        print(f"| `{words[r['name']].replace('|', ' : ')[:90]}` | {r['seconds']:.1f} | {scaled[:60]} | {note} |")
    broken = sum(not r["ok"] and r["runs"] for r in rows)
    print(f"\n{len(rows)} tasks, {broken} broken, longest {max(r['seconds'] for r in rows):.1f} s, {sum(r['seconds'] > 5 for r in rows)} over 5 s")


def main():
    if sys.argv[1:2] == ["table"]:
        return table(sys.argv[2])
    cutegen, out, jobs = sys.argv[1], sys.argv[2], int((sys.argv[3:4] or ["2"])[0])
    rows = TASKS.strip().splitlines()
    with tempfile.TemporaryDirectory() as work_folder:
        folder = pathlib.Path(work_folder)
        for k, row in enumerate(rows, 1):
            (folder / f"s{k:02d}.py").write_text(modules_tasks.write(f"s{k:02d}", row))
        (folder / "warm.py").write_text(modules_tasks.write("warm", "x=4,4|x+1|"))
        names = [f"s{k:02d}" for k in range(1, len(rows) + 1)]
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            done = [pool.submit(work, cutegen, folder, names[k::jobs], k) for k in range(jobs)]
            with open(out, "w") as file:
                for one in done:
                    for row in one.result():
                        file.write(json.dumps(row) + "\n")
    table(out)


main()
