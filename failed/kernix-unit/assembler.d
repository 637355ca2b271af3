kernix-unit/unit.o: unit.cc
