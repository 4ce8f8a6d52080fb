import{Ib as r}from"./chunk-ILMMF2XO.js";r();
