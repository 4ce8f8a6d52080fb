import{a as o,b as r}from"./chunk-UAOX4WKP.js";import"./chunk-6UBML4XB.js";export{r as ColourCard,o as ColourChoice};
