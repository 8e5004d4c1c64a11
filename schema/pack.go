//go:build ignore

// This program writes the trees of the built-in schema files: see trees.go.
package main

import (
	"log"
	"os"

	"opscope/schema"
)

func main() {
	trees, err := schema.PackBuiltin()
	if err == nil {
		err = os.WriteFile("protocols.trees", trees, 0o644)
	}
	if err != nil {
		log.Fatal(err)
	}
}
