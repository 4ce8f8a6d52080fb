import{a as o,b as r}from"./chunk-VQDI365P.js";import"./chunk-ZU5UPSDA.js";export{r as ColourCard,o as ColourChoice};
