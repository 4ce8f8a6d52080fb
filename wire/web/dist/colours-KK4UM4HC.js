import{a as o,b as r}from"./chunk-VRGDRZEI.js";import"./chunk-3HMRJDAY.js";export{r as ColourCard,o as ColourChoice};
