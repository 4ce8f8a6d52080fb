import{a as o}from"./chunk-EXLTFMVA.js";import"./chunk-YJXTFUDH.js";import"./chunk-ZW2AGZUB.js";import"./chunk-H2RS4LGK.js";export{o as Preferences};
