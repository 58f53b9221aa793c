package slurmlua_test

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"pitchpipe/controller/stanza"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/detect"
	"pitchpipe/driver/jobfile/jsontree"
)

// sample is one script of the corpus.
type sample struct {
	name, script string
}

// corpus are the stanzas of controller/stanza: those of batch scripts as they are,
// those of the other formats written as #TUNE lines.
func corpus(t testing.TB) []sample {
	t.Helper()
	var out []sample
	for _, folder := range []string{"invalid", "valid"} {
		paths, err := filepath.Glob(filepath.Join("../../controller/stanza/testdata", folder, "*.txt"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no corpus in %s (%v)", folder, err)
		}
		for _, path := range paths {
			archive, err := txtar.ParseFile(path)
			if err != nil || len(archive.Files) == 0 {
				t.Fatalf("%s: %v", path, err)
			}
			first := archive.Files[0]
			s := sample{name: strings.TrimSuffix(filepath.Base(path), ".txt"), script: string(first.Data)}
			if filepath.Ext(first.Name) != ".sh" {
				s.script = translate(first.Name, first.Data)
			}
			if s.script != "" {
				out = append(out, s)
			}
		}
	}
	return append(out, scripts()...)
}

// translate writes the stanza of another format as a batch script, "" where it
// cannot be read or holds what no line can say.
func translate(name string, src []byte) string {
	var block *jobfile.Block
	if filepath.Ext(name) == ".json" {
		read, err := jsontree.Parse(name, src)
		if err != nil {
			return ""
		}
		block = read
	} else {
		job, err := detect.Parse(name, src, nil)
		if err != nil || job.Stanza == nil {
			return ""
		}
		block = job.Stanza
		if p, err := stanza.Policy(job); err == nil {
			return "#!/bin/sh\n" + stanza.PrintLines(p) + "./train\n"
		}
	}
	var b strings.Builder
	b.WriteString("#!/bin/sh\n")
	if !line(&b, block) {
		return ""
	}
	for _, inner := range block.Blocks {
		if len(inner.Blocks) > 0 || !line(&b, inner) {
			return ""
		}
	}
	return b.String() + "./train\n"
}

func line(b *strings.Builder, block *jobfile.Block) bool {
	b.WriteString("#TUNE")
	for _, word := range []string{block.Type, block.Label} {
		if strings.ContainsAny(word, " \t\n'\"=") {
			return false
		}
		if word != "" {
			b.WriteString(" " + word)
		}
	}
	for _, a := range block.Attrs {
		text, ok := literal(a.Value)
		if !ok {
			return false
		}
		b.WriteString(" " + a.Name + "=" + text)
	}
	b.WriteString("\n")
	return true
}

func literal(v jobfile.Value) (string, bool) {
	switch v.Kind {
	case jobfile.String, jobfile.Bare:
		if strings.ContainsAny(v.Text, "\n") {
			return "", false
		}
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(v.Text) + `"`, true
	case jobfile.Number:
		return v.Text, v.Text != ""
	case jobfile.Bool:
		if v.Bool {
			return "true", true
		}
		return "false", true
	case jobfile.List:
		var parts []string
		for _, item := range v.List {
			text, ok := literal(item.Value)
			if !ok || item.Value.Kind == jobfile.List {
				return "", false
			}
			parts = append(parts, text)
		}
		return strings.Join(parts, ","), len(parts) > 0
	case jobfile.Other:
	}
	return "", false
}

// scripts are batch scripts whose fault lies in how they are written.
func scripts() []sample {
	const b, end = "#!/bin/sh\n", "./train\n"
	list := []sample{
		{name: "blanks around the equals sign", script: "#TUNE mode = apply\n"},
		{name: "no value of a key", script: "#TUNE mode= apply\n"},
		{name: "a word for a key", script: "#TUNE mode=apply twice\n"},
		{name: "a continued line", script: "#TUNE mode=apply \\\n"},
		{name: "an open single quote", script: "#TUNE progress pattern='x\n"},
		{name: "an open double quote", script: "#TUNE progress pattern=\"x\\\"\n"},
		{name: "a quote in the middle", script: "#TUNE mode=ap'ply'\n"},
		{name: "something behind a quote", script: "#TUNE mode='ap'ply\n"},
		{name: "another escape", script: "#TUNE progress pattern=\"\\d\"\n"},
		{name: "a backslash at the end", script: "#TUNE progress pattern=\"\\\n"},
		{name: "an empty element", script: "#TUNE knob cores values=1,,2\n"},
		{name: "a quote in a key", script: "#TUNE mo'de=x\n"},
		{name: "a key without a name", script: "#TUNE =x\n"},
		{name: "behind blanks", script: "  #TUNE mode=apply\n"},
		{name: "behind the first command", script: "cd /tmp\n#TUNE mode=apply\n\n\t#TUNE\tmode=apply\n"},
		{name: "behind a command and a faulty line before it", script: "#TUNE mode=\ntrue\n#TUNE mode=apply\n"},
		{name: "set by an export with other words", script: "#TUNE knob b env=B values=1 default=1\nset -e\nexport A=1 B='2'\n"},
		{name: "set by what must run", script: "#TUNE knob b env=B values=1\nB=$(nproc)\n"},
		{name: "a default that is a word for cores", script: "#TUNE knob b env=B values=1\nB=${C-x}; true\n"},
		{name: "set from another variable", script: "#TUNE knob b env=B values=1 default=1\nB=${C:-32}\n"},
		{name: "set from a variable that is set", script: "#TUNE knob b env=B values=1 default=1\nB=3\nB=${B:-32}\n"},
		{name: "a grace a nanosecond above an hour", script: "#TUNE checkpoint exit=1 grace=59m60.000000001s\n"},
		{name: "more cores than any job has", script: "#TUNE knob cores values=1048577\n"},
		{name: "a time that is too long", script: "#TUNE budget time=200000d\n"},
		{name: "a time with a wrong unit", script: "#TUNE budget time=1x\n"},
		{name: "a grace above an hour", script: "#TUNE checkpoint exit=1 grace=61m\n"},
		{name: "an energy of nothing", script: "#TUNE budget energy=0\n"},
		{name: "a fraction of a byte", script: "#TUNE knob memory values=0.4B\n"},
		{name: "more memory than any machine has", script: "#TUNE knob memory min=1 max=4611686018427389952\n"},
	}
	for i := range list {
		list[i].script = b + list[i].script + end
	}
	good := []sample{
		{name: "no stanza", script: "\n"},
		{name: "a longer word", script: "#TUNED mode=x\ntrue\n#TUNED x\n"},
		{name: "two comment signs", script: "##TUNE mode=x\n# #TUNE x\ntrue\n echo '#TUNE x'\n"},
		{name: "tabs between words", script: "#TUNE\tmode=apply\t\tobjective=time\n"},
		{name: "a lone line", script: "#TUNE\n"},
		{name: "the value stands in the script", script: "#TUNE knob b env=B values=1\nexport B=${B:-32}\n"},
		{name: "the value stands in the script by another name", script: "#TUNE knob b env=C values=1\n: \"${C:=3}\"\nB=${C:-32}\n"},
		{name: "an assignment for one command", script: "#TUNE knob b env=B values=1 default=1\nB=2 ./a\n"},
		{name: "times and amounts", script: "#TUNE budget time=1h30m1.5s energy=' 0.5 kWh '\n#TUNE knob memory values=256MiB,1.5GB,16G,7\n"},
		{name: "a grace of an hour and less than a nanosecond", script: "#TUNE checkpoint exit=1 grace=59m60.0000000009s\n"},
		{name: "as many cores as any job has", script: "#TUNE knob cores values=1048576\n"},
		{name: "a list for a text", script: "#TUNE checkpoint done=a,b exit=1\n"},
		{name: "a list of one", script: "#TUNE knob cores values=2\n"},
		{name: "words and quotes", script: "#TUNE knob o env=O values=adam,'s g d',\"it's\",ünï default=adam\n"},
		{name: "other scripts that are submitted", script: "#SBATCH --array=1-3\n#SBATCH --whatever\n"},
		{name: "watts", script: "#TUNE knob power_limit min='150 W' max=300W\n"},
		{name: "live", script: "#TUNE knob l live=true values=1,2 default=1\n"},
	}
	for i := range good {
		good[i].script = b + good[i].script + end
	}
	return append(list, good...)
}
