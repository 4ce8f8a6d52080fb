import{pd as r}from"./chunk-SLJYOF4I.js";r();
