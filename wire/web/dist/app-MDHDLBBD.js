import{Bb as r}from"./chunk-G4ZQ2I4F.js";r();
