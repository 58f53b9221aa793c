package layout

import (
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"
)

// outside are the packages of the standard library through which the world gets
// into a computation.
func outside() []string {
	return []string{
		"os", "net", "log", "syscall", "io/ioutil", "io/fs", "runtime", "plugin", "testing", "flag", "unsafe",
		"math/rand", "crypto/rand", "database/sql", "expvar", "path/filepath",
	}
}

// allowedBelow are exceptions among the packages below those.
func allowedBelow(imported string) bool { return imported == "math/rand/v2" }

// clock are the functions of package time that read or wait for the clock.
func clock() []string {
	return []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "LoadLocation"}
}

// own are the functions of math/rand/v2 that make a generator of one's own; the
// others draw from the one that everybody shares.
func own() []string { return []string{"New", "NewPCG", "NewChaCha8", "NewZipf"} }

// functional reports whether the folder's packages may not touch the world: the pure
// ones, and those that read job files.
func functional(dir string) bool {
	return underAny(dir, append(slices.Collect(maps.Keys(pure())), "driver/jobfile"))
}

func TestPurePackagesDoNotTouchTheWorld(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.test || !functional(s.dir) {
			continue
		}
		for _, imported := range s.imports() {
			if underAny(imported, outside()) && !allowedBelow(imported) {
				t.Errorf("%s imports %s, but %s is pure: take the value as an argument", s.path, imported, s.dir)
			}
		}
		for _, found := range calls(s) {
			t.Errorf("%s, but %s is pure: take the value as an argument", found, s.dir)
		}
	}
}

// calls lists the uses of the clock, of shared randomness and of the output.
func calls(s source) []string {
	var out []string
	names := localNames(s)
	ast.Inspect(s.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := sel.X.(*ast.Ident)
		if !ok {
			return true
		}
		var bad bool
		switch names[x.Name] {
		case "time":
			bad = slices.Contains(clock(), sel.Sel.Name)
		case "math/rand/v2":
			bad = token.IsExported(sel.Sel.Name) && !slices.Contains(own(), sel.Sel.Name) && !isRandType(sel.Sel.Name)
		case "fmt":
			bad = strings.HasPrefix(sel.Sel.Name, "Print") || strings.HasPrefix(sel.Sel.Name, "Scan")
		}
		if bad {
			out = append(out, s.at(sel)+" uses "+x.Name+"."+sel.Sel.Name)
		}
		return true
	})
	return out
}

func isRandType(name string) bool {
	return slices.Contains([]string{"Rand", "Source", "PCG", "ChaCha8", "Zipf"}, name)
}

// localNames maps the names under which a file knows packages to their paths.
func localNames(s source) map[string]string {
	out := map[string]string{}
	for i, spec := range s.ast.Imports {
		path := s.imports()[i]
		name := path[strings.LastIndex(path, "/")+1:]
		if path == "math/rand/v2" {
			name = "rand"
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		out[name] = path
	}
	return out
}

func TestNothingRunsBeforeMain(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		for _, decl := range s.ast.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: func init; build the value in main and pass it on", s.at(f))
			}
		}
	}
}

func TestPackagesHaveNoState(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, decl := range s.ast.Decls {
			g, ok := decl.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, spec := range g.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok && !constantLike(s, g, v) {
					t.Errorf("%s: package variable %s; make it a constant, a function or a field", s.at(v), v.Names[0].Name)
				}
			}
		}
	}
}

// constantLike reports whether a package variable only lacks the means of the
// language to be a constant: an error, an assertion of an interface, an embedded
// file, a regular expression, or the version that the linker writes into main.
func constantLike(s source, g *ast.GenDecl, v *ast.ValueSpec) bool {
	for _, doc := range []*ast.CommentGroup{g.Doc, v.Doc} {
		if doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") }) {
			return true
		}
	}
	for i, name := range v.Names {
		switch {
		case name.Name == "_":
		case s.cmd() && name.Name == "version" && s.ast.Name.Name == "main":
		case i < len(v.Values) && (made(v.Values[i], "errors", "New") || made(v.Values[i], "fmt", "Errorf")) &&
			(strings.HasPrefix(name.Name, "Err") || strings.HasPrefix(name.Name, "err")):
		case i < len(v.Values) && made(v.Values[i], "regexp", "MustCompile"):
		default:
			return false
		}
	}
	return true
}

func made(e ast.Expr, pkg, function string) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != function {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == pkg
}

func TestOnlyProgramsPrintAndExit(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.test || s.cmd() {
			continue
		}
		names := localNames(s)
		ast.Inspect(s.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			switch names[x.Name] + "." + sel.Sel.Name {
			case "fmt.Print", "fmt.Printf", "fmt.Println":
				t.Errorf("%s uses %s.%s; write to an io.Writer that the caller gives", s.at(sel), x.Name, sel.Sel.Name)
			case "os.Exit", "log.Fatal", "log.Fatalf", "log.Fatalln":
				t.Errorf("%s uses %s.%s; return an error, main decides", s.at(sel), x.Name, sel.Sel.Name)
			}
			return true
		})
	}
}

func TestEverySkipSaysWhy(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		ast.Inspect(s.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if !ok || x.Name != "t" && x.Name != "b" && x.Name != "f" && x.Name != "tb" {
				return true
			}
			if sel.Sel.Name == "SkipNow" || (sel.Sel.Name == "Skip" || sel.Sel.Name == "Skipf") && len(call.Args) == 0 {
				t.Errorf("%s skips without a reason", s.at(call))
			}
			return true
		})
	}
}
