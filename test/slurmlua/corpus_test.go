package slurmlua_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

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
			switch {
			case filepath.Ext(first.Name) == ".sh":
			case folder == "valid": // what is wanted ends with its lines
				_, lines, _ := strings.Cut(string(archive.Files[1].Data), "\n#TUNE")
				s.script = "#!/bin/sh\n#TUNE" + lines + "./train\n"
			default:
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
		read, err := jsontree.Parse(src, func(offset int, _ string) jobfile.Pos { return jobfile.At(name, src, offset) })
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

// scripts are batch scripts, good and faulty, whose point is how they are written.
func scripts() (out []sample) {
	for name, text := range map[string]string{
		"blanks around the equals sign":                "#TUNE mode = apply\n",
		"no value of a key":                            "#TUNE mode= apply\n",
		"a word for a key":                             "#TUNE mode=apply twice\n",
		"a continued line":                             "#TUNE mode=apply \\\n",
		"an open single quote":                         "#TUNE progress pattern='x\n",
		"an open double quote":                         "#TUNE progress pattern=\"x\\\"\n",
		"a quote in the middle":                        "#TUNE mode=ap'ply'\n",
		"something behind a quote":                     "#TUNE mode='ap'ply\n",
		"another escape":                               "#TUNE progress pattern=\"\\d\"\n",
		"a backslash at the end":                       "#TUNE progress pattern=\"\\\n",
		"an empty element":                             "#TUNE knob cores values=1,,2\n",
		"a quote in a key":                             "#TUNE mo'de=x\n",
		"a key without a name":                         "#TUNE =x\n",
		"behind blanks":                                "  #TUNE mode=apply\n",
		"behind the first command":                     "cd /tmp\n#TUNE mode=apply\n\n\t#TUNE\tmode=apply\n",
		"behind a command and a faulty line before it": "#TUNE mode=\ntrue\n#TUNE mode=apply\n",
		"behind a command and a good line before it":   "#TUNE mode=apply\ntrue\n#TUNE mode=apply\n",
		"a blank before the word":                      "# TUNE mode=apply\n",
		"the word in another case":                     "#Tune knob cores values=1,2\n#tune\tmode=apply\n",
		"the word runs into the next":                  "#TUNE: mode=apply\n#TUNEknob cores values=1,2\n#TUNE:mode=apply\n#TUNEmode=apply\n#tuned for n=4\n#TUNE_X=1\n",
		"remarks about tuning":                         "# tune it when a=b\n#tune = x\n# TUNE\n#TUNE mode=apply\n",
		"no stanza":                                    "\n",
		"a longer word":                                "#TUNED mode=x\ntrue\n#TUNED x\n",
		"two comment signs":                            "##TUNE mode=x\n# #TUNE x\ntrue\n echo '#TUNE x'\n",
		"tabs between words":                           "#TUNE\tmode=apply\t\tobjective=time\n",
		"a lone line":                                  "#TUNE\n",
		"several lines for one knob":                   "#TUNE mode=apply\n#TUNE knob b env=B\n#TUNE knob b values=1,2\n#TUNE knob b default=1\n",
		"a key twice on two lines":                     "#TUNE knob b env=B values=1 default=1\n#TUNE knob b values=2\n",
		"a knob that follows a later one":              "#TUNE mode=apply\n#TUNE knob a env=A follows=b\n#TUNE knob b env=B values=x,1 default=x\n",
		"a knob that follows one that follows":         "#TUNE mode=apply\n#TUNE knob a env=A follows=b\n#TUNE knob b env=B follows=c\n#TUNE knob c env=C values=1 default=1\n",
		"a knob that follows none":                     "#TUNE mode=apply\n#TUNE knob a env=A follows=b\n",
		"a list for a text":                            "#TUNE checkpoint done=a,b exit=1\n",
		"a list of one":                                "#TUNE knob cores values=2\n",
		"words and quotes":                             "#TUNE mode='apply'\n#TUNE knob o env=O values=adam,'s g d',\"it's\",ünï default=adam\n",
		"other scripts that are submitted":             "#SBATCH --array=1-3\n#SBATCH --whatever\n",
		"watts":                                        "#TUNE mode=apply\n#TUNE knob power_limit env=W min='150 W' max=300W\n",
		"memory":                                       "#TUNE mode=apply\n#TUNE knob memory env=M values=256MiB,1.5GB,16G,7\n",
		"live":                                         "#TUNE mode=apply\n#TUNE knob l live=true values=1,2 default=1\n",
		"an action beside a live knob":                 "#TUNE mode=apply\n#TUNE action widen max=2\n#TUNE knob l live=true values=1,2 default=1\n",
		"live in quotes":                               "#TUNE mode=apply\n#TUNE knob l live='true' values=1,2 default=1\n",
		"set by the script":                            "#TUNE knob b env=B values=1\nexport B=32\n",
		"more cores than any job has":                  "#TUNE knob cores values=1048577\n",
		"a time with a wrong unit":                     "#TUNE budget time=1x\n",
		"more memory than any machine has":             "#TUNE knob memory min=1 max=4611686018427389952\n",
	} {
		out = append(out, sample{name, "#!/bin/sh\n" + text + "./train\n"})
	}
	slices.SortFunc(out, func(a, b sample) int { return strings.Compare(a.name, b.name) })
	return out
}
