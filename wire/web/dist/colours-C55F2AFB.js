import{a as o,b as r}from"./chunk-LCHQTDF3.js";import"./chunk-244JP7VZ.js";export{r as ColourCard,o as ColourChoice};
