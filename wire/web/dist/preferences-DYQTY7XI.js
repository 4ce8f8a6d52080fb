import{a as o}from"./chunk-ULU4NVBA.js";import"./chunk-J5POVSWB.js";import"./chunk-RHDRITT2.js";export{o as Preferences};
