# A group of bars for each row of `table`; `columns` are those shown, in words; columns 1 to
# `names` (1, 2) say which row.
set datafile separator "\t"
set datafile missing "-"
set key outside top center horizontal noenhanced
set style data histogram
set style histogram clustered gap 1
set style fill solid 0.8 border -1
set xtics rotate by 40 right noenhanced nomirror
if (!exists("names")) names = 1
name(i) = names == 2 ? strcol(1).", ".strcol(2) : strcol(1)
plot for [i in columns] table using int(i):xtic(name(0)) title columnhead(int(i))
