package jobfile_test

import (
	"testing"

	"pitchpipe/driver/jobfile"
)

func TestScriptsThatAreTheSameCommand(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, a, b string }{
		{"another input file", "#!/bin/sh\npython train.py --data a.csv\n", "#!/bin/sh\npython train.py --data /scratch/b.csv\n"},
		{"another value of a flag", "#!/bin/sh\n./sim --steps 10 --mode fast\n", "#!/bin/sh\n./sim --steps 2000 --mode slow\n"},
		{"a value joined by an equals sign", "#!/bin/sh\n./sim --lr=0.1\n", "#!/bin/sh\n./sim --lr=1e-4\n"},
		{"another assignment", "#!/bin/sh\nexport BATCH_SIZE=32\n./sim\n", "#!/bin/sh\nexport BATCH_SIZE=${BATCH_SIZE:-128}\n./sim\n"},
		{"an assignment before the command", "#!/bin/sh\nOMP_NUM_THREADS=1 ./sim\n", "#!/bin/sh\nOMP_NUM_THREADS=8 ./sim\n"},
		{"other options of the scheduler", "#!/bin/sh\n#SBATCH -c 1\n./sim\n", "#!/bin/sh\n#SBATCH -c 8\n#TUNE mode=apply\n\n./sim\n"},
		{"another positional input", "#!/bin/sh\n./bfs graph.bin 10\n", "#!/bin/sh\n./bfs /data/roads.bin 20\n"},
		{"other comments and indentation", "#!/bin/sh\nif true; then\n  ./sim # slow\nfi\n", "#!/bin/sh\nif true; then\n./sim\nfi\n"},
		{"another output file", "#!/bin/sh\n./sim > a.txt 2>&1\n", "#!/bin/sh\n./sim > b.txt 2>&1\n"},
		{"continued lines", "#!/bin/sh\n./sim --a 1 \\\n  --b 2\n", "#!/bin/sh\n./sim --a 3 --b 4\n"},
		{"a number behind a short flag", "#!/bin/sh\nsrun -n4 ./sim -j8\n", "#!/bin/sh\nsrun -n2 ./sim -j1\n"},
		{"a quoted value", "#!/bin/sh\n./sim --name \"a b\"\n", "#!/bin/sh\n./sim --name 'c'\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if a, b := jobfile.ScriptIdentity([]byte(tt.a)), jobfile.ScriptIdentity([]byte(tt.b)); a != b {
				t.Errorf("two commands, want one:\n%s\n%s", tt.a, tt.b)
			}
		})
	}
}

func TestScriptsThatAreOtherCommands(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, a, b string }{
		{"another program", "#!/bin/sh\n./sim\n", "#!/bin/sh\n./sort\n"},
		{"another program in an argument's place", "#!/bin/sh\nsrun -n 1 ./sim --a 1\n", "#!/bin/sh\nsrun -n 1 ./sort --a 1\n"},
		{"another script of an interpreter", "#!/bin/sh\npython train.py\n", "#!/bin/sh\npython eval.py\n"},
		{"another script behind a flag of the interpreter", "#!/bin/sh\npython -u train.py\n", "#!/bin/sh\npython -u eval.py\n"},
		{"a numbered program", "#!/bin/sh\n./solver1\n", "#!/bin/sh\n./solver2\n"},
		{"another module", "#!/bin/sh\npython -m torch.train\n", "#!/bin/sh\npython -m torch.test\n"},
		{"another subcommand", "#!/bin/sh\n./app train --data x.csv\n", "#!/bin/sh\n./app test --data x.csv\n"},
		{"another flag", "#!/bin/sh\n./sim --fast 1\n", "#!/bin/sh\n./sim --slow 1\n"},
		{"one command more", "#!/bin/sh\n./sim\n", "#!/bin/sh\n./sim\n./post\n"},
		{"another interpreter", "#!/bin/sh\n./sim\n", "#!/usr/bin/python3\n./sim\n"},
		{"another program in a substitution", "#!/bin/sh\nX=$(./a 1)\n./sim\n", "#!/bin/sh\nX=$(./b 1)\n./sim\n"},
		{"another variable", "#!/bin/sh\nexport A=1\n./sim\n", "#!/bin/sh\nexport B=1\n./sim\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if a, b := jobfile.ScriptIdentity([]byte(tt.a)), jobfile.ScriptIdentity([]byte(tt.b)); a == b {
				t.Errorf("one command, want two:\n%s\n%s", tt.a, tt.b)
			}
		})
	}
}

func TestArgv(t *testing.T) {
	t.Parallel()
	base := []string{"/usr/bin/python3", "train.py", "--data", "a.csv", "--lr=0.1"}
	if got, want := jobfile.CommandIdentity([]string{"/usr/bin/python3", "train.py", "--data", "b.csv", "--lr=1"}), jobfile.CommandIdentity(base); got != want {
		t.Errorf("other values: %s, want the same %s", got, want)
	}
	for _, other := range [][]string{
		{"/usr/bin/python3", "eval.py", "--data", "a.csv", "--lr=0.1"},
		{"/usr/bin/perl", "train.py", "--data", "a.csv", "--lr=0.1"},
		{"/usr/bin/python3", "train.py", "--data", "a.csv", "--rate=0.1"},
	} {
		if jobfile.CommandIdentity(other) == jobfile.CommandIdentity(base) {
			t.Errorf("%q and %q are one command, want two", other, base)
		}
	}
	shell := func(code string) string { return jobfile.CommandIdentity([]string{"/bin/sh", "-c", code}) }
	if shell("./sim --n 1") != shell("./sim --n 2") {
		t.Error("the same code of a shell with another number is another command")
	}
	if shell("./sim --n 1") == shell("./sort --n 1") {
		t.Error("other code of a shell is the same command")
	}
	if got := jobfile.CommandIdentity(base); len(got) != 12 {
		t.Errorf("identity %q has %d digits, want 12", got, len(got))
	}
}

func FuzzScript(f *testing.F) {
	f.Add("#!/bin/sh\nexport A=${B:-1}\nsrun -n 1 python -u x.py --data $(ls 'a') > y 2>&1\nsh -c 'a b'\n")
	f.Fuzz(func(t *testing.T, src string) {
		if a, b := jobfile.ScriptIdentity([]byte(src)), jobfile.ScriptIdentity([]byte(src+"\n# more\n\n")); a != b && src != "" && src[len(src)-1] == '\n' {
			t.Errorf("a comment changes the identity of %q", src)
		}
	})
}
