package nomadhcl_test

import (
	"fmt"
	"strings"
	"testing"

	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/nomadhcl"
)

// TestAFileThatComputesWithoutEndIsRefused: what it would come to is gigabytes and more,
// so that a test that ends shows that it was not computed.
func TestAFileThatComputesWithoutEndIsRefused(t *testing.T) {
	t.Parallel()
	doubled := `a0 = "xxxxxxxxxxxxxxxx"` + "\n"
	for i := range 60 {
		doubled += fmt.Sprintf("  a%d = \"${local.a%d}${local.a%d}\"\n", i+1, i, i)
	}
	nested := `[for a in range(1000) : [for b in range(1000) : [for c in range(1000) : "${a}-${b}-${c}"]]]`
	long := `"` + strings.Repeat("y", 3000) + `"`
	for name, locals := range map[string]string{
		"doubled texts":                doubled,
		"doubled lists":                strings.NewReplacer(`"${`, "[", "}${", ", ", `}"`, "]").Replace(doubled),
		"loops in loops":               "x = " + nested,
		"a wide format":                `x = format("%2000000000d", 1)`,
		"a width from an argument":     `w = 2000000000` + "\n  x = format(\"%${local.w}d\", 1)",
		"an indented text":             `x = indent(2000000000, "a\nb")`,
		"a text for each letter":       fmt.Sprintf("l = %s\n  x = replace(replace(local.l, \"y\", local.l), \"y\", local.l)", long),
		"a number of a billion digits": `x = "${1e600000000}"`,
		"a text of such a number":      `x = "${tonumber("1e600000000")}"`,
		"the same from JSON":           `x = "${jsondecode("1e600000000")}"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src := "locals {\n  " + locals + "\n}\njob \"j\" {\n  type = \"batch\"\n  group \"g\" {\n    task \"t\" {\n      driver = \"raw_exec\"\n" +
				"      config {\n        command = \"true\"\n        args = [\"${local.x}\", \"${local.a60}\"]\n      }\n    }\n  }\n}\n"
			job, err := nomadhcl.ParseForNomad("x.hcl", []byte(src), nil)
			if err != nil {
				faults, ok := err.(jobfile.Errors) //nolint:errorlint // as documented
				if !ok || !strings.Contains(err.Error(), "1 MiB") || faults[0].Pos.Line < 2 {
					t.Errorf("%v, want the place of what grows", err)
				}
				return
			}
			for _, word := range job.Argv { // else it is left to the agent
				if len(word) > 1<<20 {
					t.Errorf("an argument of %d bytes", len(word))
				}
			}
		})
	}
}

func TestWhatIsOrdinaryIsComputed(t *testing.T) {
	t.Parallel()
	src := `variable "n" { default = 3 }
locals {
  words = [for i in range(100) : format("%04d-%s", i, upper("w"))]
  text  = join(",", [for i, w in local.words : "${i}=${w}" if i < 3])
  all   = replace(local.text, "=", ": ")
  map   = { for w in local.words : w => strlen(w) }
}
job "j" {
  type = "batch"
  group "g" {
    task "t" {
      driver = "raw_exec"
      config {
        command = "true"
        args    = [local.all, indent(2, "a\nb"), "${var.n * 2}", "${length(keys(local.map))}", "%{ for w in ["x", "y"] }${w}%{ endfor }"]
      }
    }
  }
}
`
	job, err := nomadhcl.ParseForNomad("x.hcl", []byte(src), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"true", "0: 0000-W,1: 0001-W,2: 0002-W", "a\n  b", "6", "100", "xy"}
	if strings.Join(job.Argv, "|") != strings.Join(want, "|") {
		t.Errorf("%q, want %q", job.Argv, want)
	}
}
