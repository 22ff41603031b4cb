// Check an Observatory log, or one proof out of it, with third-party code:
// golang.org/x/mod/sumdb/note and tlog, the packages by which Go checks its own checksum database.
//
//	tlogcheck proof VKEY FILE.tlog-proof FILE.leaf    one leaf, down to the signature
//	tlogcheck log VKEY FOLDER...                      whole logs, as C2SP tiles in folders
//
// The code here only reads files and parses three lines. Exit code 1: a check failed.
package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const height = 8 // a tile has 2^8 hashes

func main() {
	if len(os.Args) == 5 && os.Args[1] == "proof" {
		result, err := checkProof(os.Args[2], os.Args[3], os.Args[4])
		if err != nil {
			fmt.Println("NOT PROVEN:", err)
			os.Exit(1)
		}
		fmt.Println(result)
		return
	}
	if len(os.Args) < 4 || os.Args[1] != "log" {
		fmt.Fprintln(os.Stderr, "usage: tlogcheck proof VKEY FILE.tlog-proof FILE.leaf | tlogcheck log VKEY FOLDER...")
		os.Exit(2)
	}
	broken := 0
	for _, folder := range os.Args[3:] {
		size, err := checkLog(os.Args[2], folder)
		if err != nil {
			broken++
			fmt.Printf("%s: BROKEN: %v\n", filepath.Base(folder), err)
			continue
		}
		fmt.Printf("%s: held, %d entries\n", filepath.Base(folder), size)
	}
	if broken > 0 {
		os.Exit(1)
	}
}

// open returns the tree that a checkpoint was signed over. tlog.ParseTree takes Go's own logs only.
func open(vkey string, signed []byte) (tree tlog.Tree, err error) {
	verifier, err := note.NewVerifier(vkey)
	if err != nil {
		return tree, err
	}
	opened, err := note.Open(signed, note.VerifierList(verifier))
	if err != nil {
		return tree, err
	}
	lines := strings.Split(opened.Text, "\n")
	if len(lines) != 4 || lines[0] != verifier.Name() {
		return tree, fmt.Errorf("the note is no checkpoint of %s", verifier.Name())
	}
	if tree.N, err = strconv.ParseInt(lines[1], 10, 64); err != nil {
		return tree, err
	}
	tree.Hash, err = tlog.ParseHash(lines[2])
	return tree, err
}

func checkProof(vkey, proofFile, leafFile string) (string, error) {
	proof, err := os.ReadFile(proofFile)
	if err != nil {
		return "", err
	}
	leaf, err := os.ReadFile(leafFile)
	if err != nil {
		return "", err
	}
	head, signed, found := strings.Cut(string(proof), "\n\n")
	lines := strings.Split(head, "\n")
	if !found || len(lines) < 2 || lines[0] != "c2sp.org/tlog-proof@v1" {
		return "", fmt.Errorf("this is no tlog-proof")
	}
	number, found := strings.CutPrefix(lines[1], "index ")
	index, err := strconv.ParseInt(number, 10, 64)
	if !found || err != nil {
		return "", fmt.Errorf("the proof names no index")
	}
	var path tlog.RecordProof
	for _, line := range lines[2:] {
		hash, err := tlog.ParseHash(line)
		if err != nil {
			return "", err
		}
		path = append(path, hash)
	}
	tree, err := open(vkey, []byte(signed))
	if err != nil {
		return "", err
	}
	if err := tlog.CheckRecord(path, tree.N, tree.Hash, index, tlog.RecordHash(leaf)); err != nil {
		return "", err
	}
	return fmt.Sprintf("proven: this leaf is entry %d of the signed log of %d entries", index, tree.N), nil
}

// tiles reads a log's folder. C2SP's paths are Go's without the height.
type tiles struct{ folder string }

func (t tiles) Height() int { return height }

func (t tiles) ReadTiles(asked []tlog.Tile) ([][]byte, error) {
	found := make([][]byte, len(asked))
	for i, tile := range asked {
		path := strings.Replace(tile.Path(), fmt.Sprintf("tile/%d/", height), "tile/", 1)
		data, err := os.ReadFile(filepath.Join(t.folder, path))
		if err != nil {
			return nil, err
		}
		found[i] = data
	}
	return found, nil
}

func (t tiles) SaveTiles([]tlog.Tile, [][]byte) {}

func checkLog(vkey, folder string) (int64, error) {
	signed, err := os.ReadFile(filepath.Join(folder, "checkpoint"))
	if err != nil {
		return 0, err
	}
	tree, err := open(vkey, signed)
	if err != nil {
		return 0, err
	}
	reader := tlog.TileHashReader(tree, tiles{folder})
	root, err := tlog.TreeHash(tree.N, reader)
	if err != nil || root != tree.Hash {
		return 0, fmt.Errorf("the tiles do not lead to the signed root: %v", err)
	}
	if err := checkEntries(tree, reader, folder); err != nil {
		return 0, err
	}
	if old := tree.N / 3; old > 0 {
		return tree.N, checkGrowth(tree, old, reader)
	}
	return tree.N, nil
}

// checkEntries holds every entry against its place in the tree; of a long log each tile's ends.
func checkEntries(tree tlog.Tree, reader tlog.HashReader, folder string) error {
	for first := int64(0); first < tree.N; first += 1 << height {
		width := min(tree.N-first, 1<<height)
		tile := tlog.Tile{H: height, L: 0, N: first >> height, W: int(width)}
		path := strings.Replace(tile.Path(), fmt.Sprintf("tile/%d/0/", height), "tile/entries/", 1)
		data, err := os.ReadFile(filepath.Join(folder, path))
		if err != nil {
			return err
		}
		for i := int64(0); i < width; i++ {
			if len(data) < 2 || len(data)-2 < int(binary.BigEndian.Uint16(data)) {
				return fmt.Errorf("%s is cut short", path)
			}
			size := 2 + int(binary.BigEndian.Uint16(data))
			if tree.N <= 1000 || i == 0 || i == width-1 {
				if err := checkEntry(tree, reader, first+i, data[2:size]); err != nil {
					return err
				}
			}
			data = data[size:]
		}
		if len(data) > 0 {
			return fmt.Errorf("%s is too long", path)
		}
	}
	return nil
}

func checkEntry(tree tlog.Tree, reader tlog.HashReader, index int64, entry []byte) error {
	path, err := tlog.ProveRecord(tree.N, index, reader)
	if err != nil {
		return err
	}
	return tlog.CheckRecord(path, tree.N, tree.Hash, index, tlog.RecordHash(entry))
}

func checkGrowth(tree tlog.Tree, old int64, reader tlog.HashReader) error {
	before, err := tlog.TreeHash(old, reader)
	if err != nil {
		return err
	}
	path, err := tlog.ProveTree(tree.N, old, reader)
	if err != nil {
		return err
	}
	return tlog.CheckTree(path, tree.N, tree.Hash, old, before)
}
